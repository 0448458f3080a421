// gemm with weights in blocks of GGUF files against the reference: values, bits, and memory that
// must not be touched.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/support/block_case.h"
#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/cuts.h"
#include "tests/conformance/support/quant_case.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/tolerance.h"

namespace latte::gemm_blocks_test {
namespace {

constexpr DType kPlainInputs[] = {DType::kF32, DType::kBF16, DType::kF16};

// Decoded weights have one rounding, which the reference has too.
double BlockBound(int64_t k, double sums, double bias = 0) { return QuantBound(k, sums + bias); }

GemmProblem ProblemOf(const QuantInput& x, const BlockWeight& w, const TensorView& y) {
  GemmProblem p;
  p.x = x.x;
  p.w = w.w;
  p.y = y;
  return p;
}

// Σ|x|·magnitude of every output.
Tensor SumsOf(const QuantInput& x, const BlockWeight& w, const TensorView& like) {
  Tensor out(DType::kF32, {like.shape[0], like.shape[1], like.shape[2]});
  RunRefPart({x.magnitude, w.magnitude, TensorView(), out});
  return out;
}

void ExpectRightProducts(DType x_type, DType w_type, const QuantShape& s, BlockScales scales,
                         std::mt19937& rng) {
  SCOPED_TRACE(fmt::format("B={} M={} N={} K={} {}·{}{}", s.b, s.m, s.n, s.k, Name(x_type),
                           Name(w_type), scales == BlockScales::kHostile ? ", hostile" : ""));
  const BlockWeight w(w_type, s.b, s.n, s.k, scales, rng);
  const QuantInput x(x_type, s.b, s.m, s.k, 128, rng);
  const Guarded bias(DType::kF32, {s.n});
  FillRandom(bias, rng);
  Guarded y(DType::kF32, {s.b, s.m, s.n}, kQuantPad);
  GemmProblem p = ProblemOf(x, w, y);
  if (s.m % 3 != 0) p.bias = bias;
  const Tensor want(DType::kF32, {s.b, s.m, s.n});
  GemmProblem to_want = p;
  to_want.y = want;
  RunRefPart(to_want);
  const Tensor sums = SumsOf(x, w, want);
  int kernels = 0;
  ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
    ++kernels;
    y.Poison();
    RunPart(kernel, p);
    ASSERT_TRUE(Close(y, want, [&](int64_t b, int64_t m, int64_t n) {
      return BlockBound(s.k, static_cast<double>(GetValue(sums, b, m, n)), p.bias.empty() ? 0 : 1);
    }));
    const Tensor first(DType::kF32, {s.b, s.m, s.n});
    GemmProblem to_first = p;
    to_first.y = first;
    RunPart(kernel, to_first);
    ExpectSameBitsHoweverCut(kernel, p, y, first);
    // The bits of the product with the decoded matrix.
    const Tensor decoded(DType::kF32, {s.b, s.m, s.n});
    GemmProblem to_decoded = p;
    to_decoded.w = w.values;
    to_decoded.y = decoded;
    RunPart(kernel, to_decoded);
    ASSERT_TRUE(SameBits(decoded, first));
  });
  EXPECT_EQ(kernels > 0, TestMachine().Has(x86::kAvx2));
}

// One block, some, and more columns than kernels take at once. 32-value types: no multiple of 256.
std::vector<int64_t> TermsOf(DType type) {
  const int64_t values = ValuesPerElement(type);
  if (values == 32) return {32, 96, 1184, 2080};
  return {values, 3 * values, 5 * values, 9 * values};
}

TEST(LinearBlocksConformance, ReferenceWithinRoundingAndSameBitsHoweverCut) {
  std::mt19937 rng(31);
  size_t turn = 0;
  for (const BlockCase& c : kBlockCases)
    for (const int64_t m : {1, 3, 8, 33})
      for (const int64_t n : {1, 5, 17, 67})
        for (const int64_t k : TermsOf(c.dtype)) {
          const size_t at = turn++;
          if (!IsRun(at, 0, 7)) continue;
          // Every input and both kinds of scales with every type, M and N.
          const auto scales = at / 4 % 2 == 0 ? BlockScales::kReal : BlockScales::kHostile;
          const int64_t b = at % 7 == 0 ? 2 : 1;
          ExpectRightProducts(kPlainInputs[(at + at / 16) % 3], c.dtype, {b, m, n, k}, scales, rng);
          if (HasFatalFailure()) return;
        }
}

// Panels of fewer rows than a task has, of the most rows, of many rows of A, and of a single row.
TEST(LinearBlocksConformance, LargeProducts) {
  std::mt19937 rng(32);
  const auto test = [&](DType x, DType w, const QuantShape& s) {
    if (!HasFatalFailure()) ExpectRightProducts(x, w, s, BlockScales::kReal, rng);
  };
  test(DType::kF32, DType::kQ4_K, {1, 515, 70, 256});
  test(DType::kBF16, DType::kQ2_K, {2, 130, 133, 512});
  test(DType::kBF16, DType::kQ5_1, {1, 40, 67, 8224});
  test(DType::kF16, DType::kQ6_K, {1, 9, 40, 12288});
  test(DType::kBF16, DType::kQ8_0, {1, 7, 70, 2080});
  test(DType::kF32, DType::kQ5_K, {1, 100, 70, 1280});
  test(DType::kBF16, DType::kQ2_K, {1, 2, 3, 1 << 17});
}

// A processor's kernels leave longer rows than a panel holds to the reference, and activations of 8
// bits.
TEST(LinearBlocksConformance, OtherProductsAreLeftToTheReference) {
  for (const BlockCase& c : kBlockCases)
    for (const GemmOp::Shape& shape : {GemmOp::Shape{1, 1, 8, 1 << 19, DType::kBF16, c.dtype},
                                       GemmOp::Shape{1, 1, 8, 512, DType::kI8, c.dtype, 128}})
      for (const Kernel<GemmOp>& kernel : Kernels<GemmOp>())
        EXPECT_EQ(kernel.supports(shape),
                  kernel.isa == Isa::kRef || kernel.isa.family == IsaFamily::kCuda)
            << kernel.name;
}

void ExpectRightGate(DType x_type, DType w_type, DType gate_type, const QuantShape& s,
                     std::mt19937& rng) {
  SCOPED_TRACE(fmt::format("M={} N={} {}·{} with gate {}", s.m, s.n, Name(x_type), Name(w_type),
                           Name(gate_type)));
  const BlockWeight w(w_type, s.b, s.n, s.k, BlockScales::kReal, rng);
  const BlockWeight g(gate_type, s.b, s.n, s.k, BlockScales::kReal, rng);
  const QuantInput x(x_type, s.b, s.m, s.k, 128, rng);
  Guarded y(DType::kF32, {s.b, s.m, s.n}, kQuantPad);
  const Tensor want(DType::kF32, {s.b, s.m, s.n});
  const Tensor up(DType::kF32, {s.b, s.m, s.n});
  GemmProblem p = ProblemOf(x, w, want);
  p.gate = g.w;
  RunRefPart(p);
  RunRefPart(ProblemOf(x, w, up));
  const Tensor up_sums = SumsOf(x, w, want);
  const Tensor gate_sums = SumsOf(x, g, want);
  p.y = y;
  ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
    y.Poison();
    RunPart(kernel, p);
    ASSERT_TRUE(Close(y, want, [&](int64_t b, int64_t m, int64_t n) {
      const auto of = [&](const Tensor& t) { return static_cast<double>(GetValue(t, b, m, n)); };
      return GateBound(BlockBound(s.k, of(gate_sums)), BlockBound(s.k, of(up_sums)), of(gate_sums),
                       of(up), of(want));
    }));
    const Tensor first(DType::kF32, {s.b, s.m, s.n});
    GemmProblem to_first = p;
    to_first.y = first;
    RunPart(kernel, to_first);
    ExpectSameBitsHoweverCut(kernel, p, y, first);
  });
}

// The gate has the type of the other weight, or another one, which has offsets if the other has
// none.
TEST(LinearBlocksConformance, GatesAreMultiplied) {
  std::mt19937 rng(33);
  size_t turn = 0;
  for (size_t i = 0; i < std::size(kBlockCases); ++i)
    for (const size_t step : {0, 1, 3})
      for (const QuantShape& s : {QuantShape{1, 1, 33, 512}, {2, 8, 5, 256}, {1, 33, 70, 768}}) {
        const DType gate = kBlockCases[(i + step) % std::size(kBlockCases)].dtype;
        const size_t at = turn++;
        if (!IsRun(at, 0, 4)) continue;
        ExpectRightGate(kPlainInputs[at % 3], kBlockCases[i].dtype, gate, s, rng);
        if (HasFatalFailure()) return;
      }
}

// One of the two is plain, or both are, in different types.
TEST(LinearBlocksConformance, PlainNumbersAndBlocksAreMultipliedTogether) {
  std::mt19937 rng(35);
  size_t turn = 0;
  const auto test = [&](DType w, DType gate) {
    for (const QuantShape& s : {QuantShape{1, 1, 33, 512}, {2, 8, 5, 256}, {1, 33, 70, 768}}) {
      const size_t at = turn++;
      if (IsRun(at, 0, 4) && !HasFatalFailure())
        ExpectRightGate(kPlainInputs[(at + at / 3) % 3], w, gate, s, rng);
    }
  };
  for (const DType plain : kPlainInputs) {
    for (const BlockCase& c : kBlockCases) {
      test(plain, c.dtype);
      test(c.dtype, plain);
    }
    for (const DType other : kPlainInputs)
      if (other != plain) test(plain, other);
  }
}

// Problems of different sizes, with and without gates of several types; some share their
// activations. Some gates are plain, and some are the blocks of a plain weight.
TEST(LinearBlocksConformance, PartsOfAGroupGiveTheBitsThatTheyGiveAlone) {
  std::mt19937 rng(34);
  std::vector<DType> gate_types(std::begin(kPlainInputs), std::end(kPlainInputs));
  for (const BlockCase& c : kBlockCases) gate_types.push_back(c.dtype);
  for (const DType type : {DType::kQ4_K, DType::kQ6_K}) {
    std::vector<std::unique_ptr<BlockWeight>> weights, gates;
    std::vector<std::unique_ptr<QuantInput>> inputs;
    std::vector<Tensor> alone, together;
    std::vector<GemmProblem> parts;
    for (int64_t i = 0; i < 270; ++i) {
      const int64_t n = 1 + i * 7 % 40;
      if (i % 3 != 1)
        inputs.push_back(std::make_unique<QuantInput>(DType::kBF16, 1, i == 17 ? 150 : i / 3 % 4,
                                                      i % 2 == 0 ? 256 : 512, 128, rng));
      const int64_t m = inputs.back()->x.view().shape[1];
      const int64_t k = inputs.back()->x.view().shape[2];
      const bool plain = i % 6 == 2;
      const DType gate = plain ? type : gate_types[static_cast<size_t>(i) % gate_types.size()];
      weights.push_back(std::make_unique<BlockWeight>(plain ? kPlainInputs[i / 6 % 3] : type, 1, n,
                                                      k, BlockScales::kReal, rng));
      gates.push_back(std::make_unique<BlockWeight>(gate, 1, n, k, BlockScales::kReal, rng));
      alone.emplace_back(DType::kF32, std::initializer_list<int64_t>{1, m, n});
      together.emplace_back(DType::kF32, std::initializer_list<int64_t>{1, m, n});
      parts.push_back(ProblemOf(*inputs.back(), *weights.back(), alone.back()));
      if (i % 2 == 0) parts.back().gate = gates.back()->w;
    }
    ForEachFastKernel<GemmOp>(GemmOp::ShapeOf({parts}), [&](const Kernel<GemmOp>& kernel) {
      for (const GemmProblem& p : parts) RunPart(kernel, p);
      for (const int threads : ThreadCounts(kernel)) {
        std::vector<GemmProblem> group = parts;
        for (size_t i = 0; i < group.size(); ++i) {
          group[i].y = together[i];
          std::fill_n(together[i].Ptr<float>(), group[i].y.elements(), -7.0f);
        }
        RunKernel<GemmOp>(kernel, {group}, threads);
        for (size_t i = 0; i < group.size(); ++i)
          ASSERT_TRUE(SameBits(together[i], alone[i])) << "part " << i;
      }
    });
  }
}

}  // namespace
}  // namespace latte::gemm_blocks_test
