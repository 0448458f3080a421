// rms_norm and the gates of gemm against the reference.
#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/tolerance.h"

namespace latte::pointwise_test {
namespace {

TEST(RmsNormConformance, ReferenceWithinRoundingAndSameBitsHoweverCut) {
  std::mt19937 rng(4);
  for (const int64_t m : {0, 1, 2, 5, 17, 65})
    for (const int64_t d : {1, 7, 8, 15, 16, 17, 63, 64, 65, 191, 576, 2048})
      for (const DType w_type : {DType::kF32, DType::kF16, DType::kBF16}) {
        SCOPED_TRACE(fmt::format("M={} D={} {}", m, d, Name(w_type)));
        const Guarded x(DType::kF32, {m, d}, 3);
        const Guarded w(w_type, {d}, 0, /*shift=*/1);
        Guarded y(DType::kF32, {m, d}, 3);
        FillRandom(x, rng);
        FillRandom(w, rng);
        const RmsNormOp::Params p{x, w, y, 1e-6f};
        Tensor want(DType::kF32, {m, d});
        RunRef<RmsNormOp>({x, w, want, p.eps});
        ForEachFastKernel<RmsNormOp>(RmsNormOp::ShapeOf(p), [&](const Kernel<RmsNormOp>& kernel) {
          RunKernel(kernel, p);
          ASSERT_TRUE(Close(y, want, [&](int64_t i, int64_t j, int64_t) {
            return RmsNormBound(d) * std::abs(static_cast<double>(GetValue(want, i, j))) + kTiny;
          }));
          const std::vector<std::byte> bytes = y.Bytes();
          for (const int threads : ThreadCounts(kernel)) {
            y.Poison();
            RunKernel(kernel, p, threads);
            ASSERT_EQ(bytes, y.Bytes());
          }
          y.Poison();
          for (int64_t i = 0; i < m; ++i)
            RunKernel(kernel, RmsNormOp::Params{x.view().Slice(0, i, i + 1), w,
                                                y.view().Slice(0, i, i + 1), p.eps});
          ASSERT_EQ(bytes, y.Bytes());
          // In place.
          for (int64_t i = 0; i < m; ++i)
            std::copy_n(x.view().Row<float>(i), d, y.view().Row<float>(i));
          RunKernel(kernel, RmsNormOp::Params{y, w, y, p.eps});
          ASSERT_EQ(bytes, y.Bytes());
        });
        if (HasFatalFailure()) return;
      }
}

// Products of one term: y is silu(gate) · up.
TEST(GateConformance, ReferenceWithinRoundingOverTheRangeOfExp) {
  Tensor one(DType::kF32, {1, 1, 1});
  *one.Ptr<float>() = 1.0f;
  for (const int64_t f : {1, 7, 8, 9, 15, 16, 17, 1408}) {
    const Guarded gate(DType::kF32, {1, f, 1});
    const Guarded up(DType::kF32, {1, f, 1});
    Guarded y(DType::kF32, {1, 1, f});
    for (int64_t i = 0; i < f; ++i) {
      gate.view().Ptr<float>()[i] =
          f == 1 ? 1.0f : 220.0f * static_cast<float>(i) / static_cast<float>(f - 1) - 110.0f;
      up.view().Ptr<float>()[i] = i % 2 == 0 ? 1.0f : -3.0f;
    }
    Tensor want(DType::kF32, {1, 1, f});
    GemmProblem p;
    p.x = one;
    p.w = up;
    p.gate = gate;
    p.y = want;
    RunRefPart(p);
    p.y = y;
    ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
      RunPart(kernel, p);
      // e^−gate overflows f32, which turns a result below 2^−121 into zero.
      ASSERT_TRUE(Close(y, want, [&](int64_t b, int64_t i, int64_t j) {
        return SiluBound() * std::abs(static_cast<double>(GetValue(want, b, i, j))) + 0x1p-119;
      }));
    });
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace latte::pointwise_test
