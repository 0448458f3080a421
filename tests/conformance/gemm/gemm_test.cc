// gemm and gemm_t against the reference: values, bits, and memory that must not be touched.
#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/shapes.h"
#include "tests/conformance/support/tolerance.h"

namespace latte::gemm_test {
namespace {

constexpr int64_t kPad = 5;  // elements between rows: only the first row is aligned

// |x| and |w| in f32, so that the reference itself computes Σ|x||w|.
void FillAbs(const TensorView& from, const TensorView& to) {
  for (int64_t b = 0; b < from.shape[0]; ++b)
    for (int64_t i = 0; i < from.shape[1]; ++i)
      for (int64_t j = 0; j < from.shape[2]; ++j)
        to.Ptr<float>()[(b * to.shape[1] + i) * to.shape[2] + j] =
            std::abs(GetValue(from, b, i, j));
}

// Ranges of the rows and columns of a call to compute alone: begin and end.
std::vector<std::pair<int64_t, int64_t>> Parts(int64_t count) {
  std::vector<std::pair<int64_t, int64_t>> out = {{0, 1}, {count - 1, count}, {count / 2, count}};
  for (int64_t begin = 0; begin < count; begin += 7)
    out.emplace_back(begin, std::min(count, begin + 7));
  return out;
}

void RunOn(const Kernel<GemmOp>& kernel, const GemmProblem& part, int threads = 1) {
  RunPart(kernel, part, threads);
}
void RunOn(const Kernel<GemmTOp>& kernel, const GemmTOp::Params& p, int threads = 1) {
  RunKernel(kernel, p, threads);
}
void RunAs(Uarch uarch, const Kernel<GemmOp>& kernel, const GemmProblem& part) {
  RunPartAs(uarch, kernel, part, 2);
}
void RunAs(Uarch uarch, const Kernel<GemmTOp>& kernel, const GemmTOp::Params& p) {
  RunKernelAs(uarch, kernel, p, 2);
}

// Runs the kernel with several thread counts, twice and as every micro-architecture, then parts of
// M and of the outputs alone. The bits must be the same each time, and nothing may be written
// between rows of y.
template <class Op, class Params>
void ExpectSameBitsHoweverCut(const Kernel<Op>& kernel, const Params& p, Guarded& y,
                              const TensorView& want) {
  for (const int threads : ThreadCounts(kernel)) {
    y.Poison();
    RunOn(kernel, p, threads);
    ASSERT_TRUE(SameBits(y, want)) << threads << " threads";
    ASSERT_TRUE(y.PaddingIsPoison());
  }
  for (const Uarch uarch : UarchsOf(kernel)) {
    y.Poison();
    RunAs(uarch, kernel, p);
    ASSERT_TRUE(SameBits(y, want)) << Name(uarch);
  }
  for (const auto& [begin, end] : Parts(p.x.shape[1])) {
    y.Poison();
    Params part = p;
    part.x = p.x.Slice(1, begin, end);
    part.y = p.y.Slice(1, begin, end);
    RunOn(kernel, part);
    ASSERT_TRUE(SameBits(part.y, want.Slice(1, begin, end))) << "rows " << begin << " to " << end;
  }
}

TEST(LinearConformance, ReferenceWithinRoundingAndSameBitsHoweverCut) {
  std::mt19937 rng(1);
  for (const LinearShape& s : LinearShapes())
    for (const auto& [x_type, w_type] : kLinearTypes) {
      SCOPED_TRACE(
          fmt::format("B={} M={} N={} K={} {}·{}", s.b, s.m, s.n, s.k, Name(x_type), Name(w_type)));
      const Guarded x(x_type, {s.b, s.m, s.k}, kPad);
      const Guarded w(w_type, {s.b, s.n, s.k}, kPad, /*shift=*/s.k % 2);
      const Guarded bias(DType::kF32, {s.n});
      Guarded y(DType::kF32, {s.b, s.m, s.n}, kPad);
      for (const TensorView& t : {x.view(), w.view(), bias.view()}) FillRandom(t, rng);
      GemmProblem p{x, w, s.k % 3 == 0 ? TensorView() : bias.view(), y};

      Tensor want(DType::kF32, {s.b, s.m, s.n});
      Tensor sums(DType::kF32, {s.b, s.m, s.n});
      Tensor abs_x(DType::kF32, {s.b, s.m, s.k});
      Tensor abs_w(DType::kF32, {s.b, s.n, s.k});
      FillAbs(x, abs_x);
      FillAbs(w, abs_w);
      RunRefPart({x, w, p.bias, want});
      RunRefPart({abs_x, abs_w, TensorView(), sums});

      ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
        y.Poison();
        RunOn(kernel, p);
        ASSERT_TRUE(Close(y, want, [&](int64_t b, int64_t m, int64_t n) {
          return DotBound(s.k, static_cast<double>(GetValue(sums, b, m, n)) + 1.0);
        }));
        if (s.m == 0) return;
        Tensor first(DType::kF32, {s.b, s.m, s.n});
        RunOn(kernel, GemmProblem{x, w, p.bias, first});
        ExpectSameBitsHoweverCut(kernel, p, y, first);
        for (const auto& [begin, end] : Parts(s.n)) {
          GemmProblem part = p;
          part.w = p.w.Slice(1, begin, end);
          if (!p.bias.empty()) part.bias = p.bias.Slice(0, begin, end);
          part.y = p.y.Slice(2, begin, end);
          if (!kernel.supports(GemmOp::ShapeOf(part))) continue;
          y.Poison();
          RunOn(kernel, part);
          ASSERT_TRUE(SameBits(part.y, first.view().Slice(2, begin, end)))
              << "outputs " << begin << " to " << end;
        }
      });
      if (HasFatalFailure()) return;
    }
}

TEST(LinearTConformance, ReferenceWithinRoundingAndSameBitsHoweverCut) {
  std::mt19937 rng(2);
  for (const auto& [b, m, k, n] : LinearShapes())
    for (const auto& [x_type, w_type] : kLinearTypes) {
      SCOPED_TRACE(
          fmt::format("B={} M={} N={} K={} {}·{}", b, m, n, k, Name(x_type), Name(w_type)));
      const Guarded x(x_type, {b, m, n}, kPad);
      const Guarded w(w_type, {b, n, k}, kPad, /*shift=*/n % 2);
      Guarded y(DType::kF32, {b, m, k}, kPad);
      FillRandom(x, rng);
      FillRandom(w, rng);
      const GemmTOp::Params p{x, w, y};

      Tensor want(DType::kF32, {b, m, k});
      Tensor sums(DType::kF32, {b, m, k});
      Tensor abs_x(DType::kF32, {b, m, n});
      Tensor abs_w(DType::kF32, {b, n, k});
      FillAbs(x, abs_x);
      FillAbs(w, abs_w);
      RunRef<GemmTOp>({x, w, want});
      RunRef<GemmTOp>({abs_x, abs_w, sums});

      ForEachFastKernel<GemmTOp>(GemmTOp::ShapeOf(p), [&, rows = m, terms = n, columns = k,
                                                       batch = b](const Kernel<GemmTOp>& kernel) {
        y.Poison();
        RunOn(kernel, p);
        ASSERT_TRUE(Close(y, want, [&](int64_t i, int64_t j, int64_t l) {
          return DotBound(terms, static_cast<double>(GetValue(sums, i, j, l)));
        }));
        if (rows == 0) return;
        Tensor first(DType::kF32, {batch, rows, columns});
        RunOn(kernel, GemmTOp::Params{x, w, first});
        ExpectSameBitsHoweverCut(kernel, p, y, first);
        for (const auto& [begin, end] : Parts(columns)) {
          GemmTOp::Params part = p;
          part.w = p.w.Slice(2, begin, end);
          part.y = p.y.Slice(2, begin, end);
          y.Poison();
          RunOn(kernel, part);
          ASSERT_TRUE(SameBits(part.y, first.view().Slice(2, begin, end)))
              << "columns " << begin << " to " << end;
        }
      });
      if (HasFatalFailure()) return;
    }
}

// Large enough for several tasks, row blocks and panels; compared with itself, row by row.
struct LargeShape {
  int64_t m, n, k;
};

// Every M up to `m`: kernels traverse the weights in another order for small M than for large M.
void ExpectBitsOfSingleRows(const LargeShape& s, DType x_type, DType w_type, std::mt19937& rng) {
  const Guarded x(x_type, {1, s.m, s.k}, kPad);
  const Guarded w(w_type, {1, s.n, s.k}, kPad);
  FillRandom(x, rng);
  FillRandom(w, rng);
  Guarded y(DType::kF32, {1, s.m, s.n}, kPad);
  const GemmProblem p{x, w, TensorView(), y};
  const auto rows_of = [&](const TensorView& to, int64_t begin, int64_t end) {
    return GemmProblem{x.view().Slice(1, begin, end), w, TensorView(), to.Slice(1, begin, end)};
  };
  ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
    Tensor single(DType::kF32, {1, s.m, s.n});
    for (int64_t m = 0; m < s.m; ++m) RunOn(kernel, rows_of(single, m, m + 1));
    for (const int threads : ThreadCounts(kernel)) {
      y.Poison();
      RunOn(kernel, p, threads);
      ASSERT_TRUE(SameBits(y, single)) << threads << " threads";
    }
    for (const Uarch uarch : UarchsOf(kernel)) {
      y.Poison();
      RunAs(uarch, kernel, p);
      ASSERT_TRUE(SameBits(y, single)) << Name(uarch);
      ASSERT_TRUE(y.PaddingIsPoison());
    }
    for (int64_t m = 1; m < std::min<int64_t>(s.m, 10); ++m) {
      y.Poison();
      RunOn(kernel, rows_of(y, 0, m));
      ASSERT_TRUE(SameBits(y.view().Slice(1, 0, m), single.view().Slice(1, 0, m))) << m << " rows";
      for (const Uarch uarch : UarchsOf(kernel)) {
        y.Poison();
        RunAs(uarch, kernel, rows_of(y, 0, m));
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

TEST(LinearConformance, LargeProductsGiveTheBitsOfSingleRows) {
  std::mt19937 rng(3);
  size_t turn = 0;
  for (const auto& [x_type, w_type] : kLinearTypes)
    for (const LargeShape& s : {LargeShape{200, 300, 1100},
                                {100, 605, 2100},
                                {200, 133, 4140},
                                {41, 133, 4140},
                                {18, 50, 4096 - kPad},
                                {7, 37, 6200},
                                {3, 21, 13000}}) {
      if (!IsRun(turn++, 0, 8)) continue;
      SCOPED_TRACE(fmt::format("M={} N={} K={} {}·{}", s.m, s.n, s.k, Name(x_type), Name(w_type)));
      ExpectBitsOfSingleRows(s, x_type, w_type, rng);
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace latte::gemm_test
