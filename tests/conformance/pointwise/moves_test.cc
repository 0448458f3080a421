// Ops that move, round and weight rows: every kernel gives the bytes of the reference.
#include <gtest/gtest.h>

#include "src/kernels/params/moe.h"
#include "tests/conformance/support/block_case.h"
#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/run_kernels.h"

namespace latte::moves_test {
namespace {

constexpr int64_t kWidths[] = {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 129, 576};

// Difficult inputs of conversions: ties of both 16-bit types, largest and smallest numbers, zeros.
constexpr float kEdges[] = {0.0f,       -0.0f,         1.00390625f,  1.01171875f, -1.00390625f,
                            65519.0f,   65520.0f,      3.4e38f,      -3.39e38f,   0x1p-126f,
                            0x1p-130f,  0x1p-149f,     0x1.002p-14f, 0x1p-24f,    0x1p-25f,
                            0x1.8p-25f, 1.00048828125f};

void FillEdges(const TensorView& t, std::mt19937& rng, bool nan) {
  FillRandom(t, rng);
  const int64_t width = t.shape[t.rank - 1];
  for (int64_t i = 0; i < t.shape[0]; ++i)
    for (int64_t j = static_cast<int64_t>(rng() % 3); j < width; j += 3)
      t.Row<float>(i)[j] = kEdges[rng() % std::size(kEdges)];
  if (!nan || t.elements() == 0) return;
  t.Row<float>(0)[0] = -std::numeric_limits<float>::infinity();
  t.Row<float>(0)[width - 1] = std::bit_cast<float>(0x7f812345u);  // signalling
}

// Whether f32 numbers, given as bytes, differ by at most `roundings` roundings of numbers up to the
// larger of 1 and their own size.
::testing::AssertionResult AreNear(const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                                   double roundings) {
  for (size_t i = 0; i + sizeof(float) <= a.size(); i += sizeof(float)) {
    float x, y;
    std::memcpy(&x, a.data() + i, sizeof(x));
    std::memcpy(&y, b.data() + i, sizeof(y));
    if (std::memcmp(&x, &y, sizeof(x)) == 0) continue;
    const double size = std::max(1.0, std::abs(static_cast<double>(x)));
    if (!(std::abs(static_cast<double>(x) - static_cast<double>(y)) <= roundings * 0x1p-24 * size))
      return ::testing::AssertionFailure() << x << " and " << y;
  }
  return ::testing::AssertionSuccess();
}

// Runs the reference, then every kernel with several thread counts, each starting from the current
// content of `written`. Kernels of GPUs, whose exponential is another one, may differ by
// `gpu_roundings`.
template <class Op>
void ExpectBytesOfReference(const typename Op::Params& p, std::vector<Guarded*> written,
                            double gpu_roundings = 0) {
  std::vector<std::vector<std::byte>> before;
  std::vector<std::vector<std::byte>> want;
  for (const Guarded* t : written) before.push_back(t->Bytes());
  RunRef<Op>(p);
  for (const Guarded* t : written) want.push_back(t->Bytes());
  ForEachFastKernel<Op>(Op::ShapeOf(p), [&](const Kernel<Op>& kernel) {
    for (const int threads : ThreadCounts(kernel)) {
      for (size_t i = 0; i < written.size(); ++i)
        std::copy(before[i].begin(), before[i].end(), written[i]->view().data);
      RunKernel(kernel, p, threads);
      const bool near = kernel.isa.family == IsaFamily::kCuda && gpu_roundings > 0;
      for (size_t i = 0; i < written.size(); ++i)
        if (near)
          ASSERT_TRUE(AreNear(want[i], written[i]->Bytes(), gpu_roundings));
        else
          ASSERT_EQ(want[i], written[i]->Bytes());
    }
  });
}

TEST(MovesConformance, Cast) {
  std::mt19937 rng(20);
  for (const DType dtype : {DType::kBF16, DType::kF16})
    for (const int64_t rows : {0, 1, 3, 40})
      for (const int64_t width : kWidths) {
        SCOPED_TRACE(fmt::format("{} [{}, {}]", Name(dtype), rows, width));
        const Guarded x(DType::kF32, {rows, width});
        Guarded y(dtype, {rows, width}, 0, /*shift=*/2);
        FillEdges(x, rng, /*nan=*/true);
        ExpectBytesOfReference<CastOp>({x, y}, {&y});
        if (HasFatalFailure()) return;
      }
}

// Columns of every head, one row repeated for all heads, and copies: no operand is contiguous.
TEST(MovesConformance, CastOfColumns) {
  std::mt19937 rng(27);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    for (const int64_t rows : {0, 1, 5})
      for (const int64_t width : kWidths)
        for (const bool repeated : {false, true}) {
          SCOPED_TRACE(fmt::format("{} [{}, 3, {}] {}", Name(dtype), rows, width, repeated));
          const Guarded all(DType::kF32, {rows, 3, width + 5}, 4);
          Guarded y(dtype, {rows, 3, width + 2}, 3);
          FillRandom(all, rng);
          TensorView x = all.view().Slice(2, 5, width + 5);
          if (repeated) x.stride[1] = 0;
          ExpectBytesOfReference<CastOp>({x, y.view().Slice(2, 1, width + 1)}, {&y});
          if (HasFatalFailure()) return;
        }
}

TEST(MovesConformance, Add) {
  std::mt19937 rng(21);
  for (const int64_t rows : {0, 1, 3, 40})
    for (const int64_t width : kWidths) {
      SCOPED_TRACE(fmt::format("[{}, {}]", rows, width));
      const Guarded x(DType::kF32, {rows, width});
      Guarded y(DType::kF32, {rows, width});
      FillEdges(x, rng, /*nan=*/false);
      FillEdges(y, rng, /*nan=*/false);
      ExpectBytesOfReference<AddOp>({x, y}, {&y});
      if (HasFatalFailure()) return;
    }
}

TEST(MovesConformance, Gather) {
  std::mt19937 rng(22);
  using Types = std::pair<DType, DType>;
  for (const auto& [from, to] : {Types{DType::kF32, DType::kF32}, Types{DType::kBF16, DType::kF32},
                                 Types{DType::kF16, DType::kF32}, Types{DType::kBF16, DType::kBF16},
                                 Types{DType::kF16, DType::kF16}, Types{DType::kI8, DType::kI8}})
    for (const int64_t rows : {0, 1, 5, 70})
      for (const int64_t width : kWidths) {
        SCOPED_TRACE(fmt::format("{} to {} [{}, {}]", Name(from), Name(to), rows, width));
        const Guarded x(from, {9, width}, 3, /*shift=*/1);
        FillRandom(x, rng);
        Guarded y(to, {rows, width});
        std::vector<int32_t> ids(static_cast<size_t>(rows));
        for (int32_t& id : ids) id = static_cast<int32_t>(rng() % 9);
        ExpectBytesOfReference<GatherOp>({x, ids, y}, {&y});
        if (to == DType::kF32) ExpectBytesOfReference<GatherOp>({x, ids, y, 67.49f}, {&y});
        if (HasFatalFailure()) return;
      }
}

TEST(MovesConformance, GatherOfBlocks) {
  std::mt19937 rng(28);
  const int64_t most = TestGpu() == nullptr ? 70 : 7;
  for (const BlockCase& c : kBlockCases)
    for (const BlockScales scales : {BlockScales::kReal, BlockScales::kHostile})
      for (const int64_t rows : {int64_t{0}, int64_t{1}, most})
        for (const int64_t blocks : {1, 5}) {
          SCOPED_TRACE(fmt::format("{} [{}, {}]", Name(c.dtype), rows, blocks));
          const Guarded x(c.dtype, {9, blocks}, 2, /*shift=*/1);
          FillBlocks(x, scales, rng);
          Guarded y(DType::kF32, {rows, blocks * ValuesPerElement(c.dtype)});
          std::vector<int32_t> ids(static_cast<size_t>(rows));
          for (int32_t& id : ids) id = static_cast<int32_t>(rng() % 9);
          ExpectBytesOfReference<GatherOp>({x, ids, y}, {&y});
          ExpectBytesOfReference<GatherOp>({x, ids, y, 67.49f}, {&y});
          if (HasFatalFailure()) return;
        }
}

TEST(MovesConformance, Rope) {
  std::mt19937 rng(23);
  for (const bool interleaved : {true, false})
    for (const int64_t rows : {0, 1, 5})
      for (const int64_t heads : {1, 3})
        for (const int64_t r : {0, 2, 6, 10, 16, 18, 32, 34, 64, 66}) {
          SCOPED_TRACE(fmt::format("[{}, {}, {}] {}", rows, heads, r, interleaved));
          Guarded x(DType::kF32, {rows, heads, r}, 5);
          const Guarded cos(DType::kF32, {rows, r / 2});
          const Guarded sin(DType::kF32, {rows, r / 2});
          for (const TensorView& t : {x.view(), cos.view(), sin.view()}) FillRandom(t, rng);
          ExpectBytesOfReference<RopeOp>({x, cos, sin, interleaved}, {&x});
          if (HasFatalFailure()) return;
        }
}

TEST(MovesConformance, Append) {
  std::mt19937 rng(24);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    for (const int64_t rows : {0, 1, 5, 33})
      for (const int64_t first : {1, 16, 17, 512})
        for (const int64_t second : {0, 1, 64}) {
          SCOPED_TRACE(fmt::format("{} T={} {}+{}", Name(dtype), rows, first, second));
          const Guarded a(DType::kF32, {rows, first}, 3);
          const Guarded b(DType::kF32, {rows, second}, 1);
          Guarded pages(dtype, {5, 8, first + second});
          FillEdges(a, rng, /*nan=*/true);
          FillRandom(b, rng);
          std::vector<int64_t> slots(40);
          std::iota(slots.begin(), slots.end(), 0);
          std::shuffle(slots.begin(), slots.end(), rng);
          slots.resize(static_cast<size_t>(rows));
          const TensorView none;
          ExpectBytesOfReference<AppendOp>({a, second == 0 ? none : b.view(), pages, slots},
                                           {&pages});
          if (HasFatalFailure()) return;
        }
}

TEST(MovesConformance, Combine) {
  std::mt19937 rng(25);
  for (const int64_t tokens : {0, 1, 5, 19})
    for (const int64_t chosen : {1, 6})
      for (const int64_t width : kWidths) {
        SCOPED_TRACE(fmt::format("T={} K={} D={}", tokens, chosen, width));
        const Guarded x(DType::kF32, {7, width});
        Guarded y(DType::kF32, {tokens, width});
        FillRandom(x, rng);
        FillRandom(y, rng);
        std::vector<int32_t> rows(static_cast<size_t>(tokens * chosen));
        std::vector<float> weights(rows.size());
        for (int32_t& row : rows) row = static_cast<int32_t>(rng() % 7);
        for (float& w : weights) w = static_cast<float>(rng() % 1000) / 777.0f;
        for (const bool add : {true, false}) {
          ExpectBytesOfReference<CombineOp>({x, rows, weights, chosen, y, add}, {&y});
          if (HasFatalFailure()) return;
        }
      }
}

TEST(MovesConformance, LseMerge) {
  std::mt19937 rng(26);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t rows : {0, 1, 9, 300})
    for (const int64_t width : kWidths) {
      SCOPED_TRACE(fmt::format("[{}, {}]", rows, width));
      Guarded o(DType::kF32, {rows, width});
      Guarded lse(DType::kF32, {rows});
      const Guarded o_b(DType::kF32, {rows, width});
      const Guarded lse_b(DType::kF32, {rows});
      for (const TensorView& t : {o.view(), lse.view(), o_b.view(), lse_b.view()})
        FillRandom(t, rng);
      for (int64_t i = 0; i < rows; ++i) {
        // One or both attended to nothing; their content is then arbitrary.
        if (i % 4 == 1) lse.view().Ptr<float>()[i] = i % 8 == 1 ? kInfinity : -kInfinity;
        if (i % 3 == 1) lse_b.view().Ptr<float>()[i] = -kInfinity;
        if (i % 3 == 1) o_b.view().Row<float>(i)[0] = std::numeric_limits<float>::quiet_NaN();
        if (i % 5 == 2) lse_b.view().Ptr<float>()[i] *= 200.0f;
      }
      // Two exponentials, their sum, two products and a quotient; a logarithm of 2 roundings.
      ExpectBytesOfReference<LseMergeOp>({o, lse, o_b, lse_b}, {&o, &lse}, 8);
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace latte::moves_test
