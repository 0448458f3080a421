// 8-bit products with large K or large M give the bits of M = 1, although kernels traverse the
// weights differently by M and split K. All kernels add in the same order, so an answer does not
// depend on the machine.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/quant_case.h"
#include "tests/conformance/support/run_kernels.h"

namespace latte::gemm_s8_test {
namespace {

struct BytesShape {
  int64_t m, n, k;
};

// Activations with groups of 128, weights, and a bias.
struct BytesCase {
  BytesCase(const BytesShape& s, DType w_type, const QuantBlocks& blocks, std::mt19937& rng)
      : w(w_type, 1, s.n, s.k, blocks, rng),
        x(DType::kI8, 1, s.m, s.k, 128, rng),
        bias(DType::kF32, {s.n}),
        y(DType::kF32, {1, s.m, s.n}, kQuantPad),
        part(PartOf(x, w, y)) {
    FillRandom(bias, rng);
    part.bias = bias;
  }

  QuantWeight w;
  QuantInput x;
  Guarded bias, y;
  GemmProblem part;
};

void ExpectBitsOfSingleRows(const BytesShape& s, DType w_type, const QuantBlocks& blocks) {
  std::mt19937 rng(5);
  BytesCase of(s, w_type, blocks, rng);
  const GemmProblem& p = of.part;
  Guarded& y = of.y;
  const auto rows_of = [&p](const TensorView& to, int64_t begin, int64_t end) {
    GemmProblem part = p;
    part.x = p.x.Slice(1, begin, end);
    part.x_scale = p.x_scale.Slice(1, begin, end);
    part.y = to.Slice(1, begin, end);
    return part;
  };
  ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
    Tensor single(DType::kF32, {1, s.m, s.n});
    for (int64_t m = 0; m < s.m; ++m) RunPart(kernel, rows_of(single, m, m + 1));
    for (const int threads : ThreadCounts(kernel)) {
      y.Poison();
      RunPart(kernel, p, threads);
      ASSERT_TRUE(SameBits(y, single)) << threads << " threads";
    }
    for (const Uarch uarch : UarchsOf(kernel)) {
      y.Poison();
      RunPartAs(uarch, kernel, p, 2);
      ASSERT_TRUE(SameBits(y, single)) << Name(uarch);
      ASSERT_TRUE(y.PaddingIsPoison());
    }
    for (int64_t m = 1; m < std::min<int64_t>(s.m, 16); ++m) {
      y.Poison();
      RunPart(kernel, rows_of(y, 0, m));
      ASSERT_TRUE(SameBits(y.view().Slice(1, 0, m), single.view().Slice(1, 0, m))) << m << " rows";
      for (const Uarch uarch : UarchsOf(kernel)) {
        y.Poison();
        RunPartAs(uarch, kernel, rows_of(y, 0, m), 2);
        ASSERT_TRUE(SameBits(y.view().Slice(1, 0, m), single.view().Slice(1, 0, m)))
            << m << " rows, " << Name(uarch);
        y.Poison();
        RunPartPeerAs(uarch, kernel, rows_of(y, 0, m), 2);
        ASSERT_TRUE(SameBits(y.view().Slice(1, 0, m), single.view().Slice(1, 0, m)))
            << m << " rows, peer on " << Name(uarch);
      }
    }
  });
}

TEST(LinearBytesConformance, LongAndLargeProductsGiveTheBitsOfSingleRows) {
  size_t turn = 0;
  for (const QuantBlocks& blocks : {QuantBlocks{1, 0, 0, 0, DType::kBF16},
                                    {1, 128, 0, 0, DType::kF16},
                                    {1, 32, 0, 0, DType::kBF16},
                                    {1, 32, 3, 64, DType::kF32, true}})
    for (const DType w_type : {DType::kI8, DType::kU4})
      for (const BytesShape& s : {BytesShape{200, 150, 1301},
                                  {64, 70, 3300},
                                  {48, 70, 4240},
                                  {32, 50, 300},
                                  {16, 70, 8330},
                                  {9, 37, 1408},
                                  {3, 21, 16700}}) {
        if (!IsRun(turn++, 0, 9)) continue;
        SCOPED_TRACE(fmt::format("M={} N={} K={} {} blocks of {}{}", s.m, s.n, s.k, Name(w_type),
                                 blocks.columns, blocks.zeros ? " with zeros" : ""));
        ExpectBitsOfSingleRows(s, w_type, blocks);
        if (HasFatalFailure()) return;
      }
}

// Some parts have enough rows to be packed once, others do not, and neighbours may share rows.
// Weights have one scale per row, whatever their length.
TEST(LinearBytesConformance, PartsOfAGroupGiveTheBitsThatTheyGiveAlone) {
  constexpr QuantBlocks kOneScale{1, 0, 0, 0, DType::kBF16};
  std::mt19937 rng(7);
  for (const DType w_type : {DType::kI8, DType::kU4}) {
    std::vector<std::unique_ptr<BytesCase>> cases;
    for (const BytesShape& s : {BytesShape{5, 40, 300},
                                {32, 100, 300},
                                {32, 53, 300},
                                {1, 70, 1301},
                                {130, 70, 640},
                                {30, 49, 1301},
                                {30, 7, 1301},
                                {14, 96, 129},
                                {20, 50, 640}})
      cases.push_back(std::make_unique<BytesCase>(s, w_type, kOneScale, rng));
    for (const size_t i : {size_t{2}, size_t{6}}) {
      cases[i]->part.x = cases[i - 1]->part.x;
      cases[i]->part.x_scale = cases[i - 1]->part.x_scale;
    }
    std::vector<GemmProblem> parts;
    for (const auto& c : cases) parts.push_back(c->part);
    ForEachKernel<GemmOp>([&](const Kernel<GemmOp>& kernel) {
      if (kernel.isa == Isa::kRef || !SupportsAll(kernel, parts)) return;
      std::vector<Tensor> alone;
      for (const GemmProblem& p : parts) {
        GemmProblem part = p;
        alone.emplace_back(DType::kF32,
                           std::initializer_list<int64_t>{1, p.y.shape[1], p.y.shape[2]});
        part.y = alone.back();
        RunPart(kernel, part);
      }
      for (const int threads : ThreadCounts(kernel)) {
        for (const auto& c : cases) c->y.Poison();
        RunKernel<GemmOp>(kernel, {parts}, threads);
        for (size_t i = 0; i < cases.size(); ++i) {
          ASSERT_TRUE(SameBits(cases[i]->y, alone[i]))
              << "part " << i << ", " << threads << " threads";
          ASSERT_TRUE(cases[i]->y.PaddingIsPoison()) << "part " << i;
        }
      }
    });
  }
}

// y[m, n], computed step by step in the order that cpu/byte_scales-inl.h defines.
float InOrder(const QuantInput& x, const QuantWeight& w, int64_t m, int64_t n, float bias) {
  constexpr int64_t kChunk = 128;
  const int64_t k_count = x.x.view().shape[2];
  const BlockScale& g = w.grid;
  const auto column_of = [&g](int64_t k) { return (g.column_begin + k) / g.columns; };
  const int64_t row = (g.row_begin + n) / g.rows;
  const auto scale_at = [&](int64_t k) { return GetValue(g.scale, row, column_of(k)); };
  const bool one = column_of(0) == column_of(k_count - 1);
  const bool long_runs = one || (g.columns % kChunk == 0 && g.column_begin % kChunk == 0);
  const int64_t run = long_runs ? kChunk : 32;
  const auto code_at = [&](int64_t k) {
    const TensorView codes = w.codes;
    const float offset = codes.dtype != DType::kU4 ? 0
                         : g.zero.empty()          ? 8
                                                   : g.zero.Row<uint8_t>(row)[column_of(k)];
    return static_cast<int64_t>(LoadElement(codes.data + n * codes.stride[1], codes.dtype, k) -
                                offset);
  };
  float total = 0;
  for (int64_t chunk = 0; chunk < k_count; chunk += kChunk) {
    float scaled = 0;
    for (int64_t begin = chunk; begin < std::min(chunk + kChunk, k_count); begin += run) {
      int64_t sum = 0;
      for (int64_t k = begin; k < std::min(begin + run, k_count); ++k)
        sum += code_at(k) * static_cast<int64_t>(GetValue(x.x, 0, m, k));
      const float scale = one ? 1 : scale_at(begin);
      const auto value = static_cast<float>(sum);
      scaled = begin == chunk ? value * scale : std::fma(value, scale, scaled);
    }
    total = std::fma(scaled, GetValue(x.scale, 0, m, chunk / x.group), total);
  }
  return (one ? total * scale_at(0) : total) + bias;
}

TEST(LinearBytesConformance, EveryRowAddsInTheSameOrder) {
  std::mt19937 rng(6);
  for (const QuantBlocks& blocks : {QuantBlocks{1, 0, 0, 0, DType::kBF16},
                                    {128, 128, 60, 0, DType::kF32},
                                    {1, 32, 0, 0, DType::kBF16},
                                    {1, 32, 3, 64, DType::kF32, true}})
    for (const DType w_type : {DType::kI8, DType::kU4})
      for (const BytesShape& s :
           {BytesShape{1, 9, 4300}, {2, 70, 4300}, {7, 80, 300}, {30, 40, 1025}}) {
        BytesCase of(s, w_type, blocks, rng);
        const GemmProblem& p = of.part;
        ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
          if (kernel.order != "s8 chunks of 128") return;
          of.y.Poison();
          RunPart(kernel, p);
          for (int64_t m = 0; m < s.m; ++m)
            for (int64_t n = 0; n < s.n; ++n)
              ASSERT_EQ(GetValue(of.y, 0, m, n), InOrder(of.x, of.w, m, n, GetValue(of.bias, n)))
                  << kernel.name << " " << Name(w_type) << " M=" << s.m << " at " << m << ", " << n;
        });
        if (HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace latte::gemm_s8_test
