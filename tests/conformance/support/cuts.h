// Parts of a product: they have the bits that the whole product gives them.
#pragma once

#include <utility>

#include <gtest/gtest.h>

#include "src/kernels/params/gemm.h"
#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/guarded.h"
#include "tests/conformance/support/run_kernels.h"

namespace latte {

// Rows [begin, end) of the activations.
inline GemmProblem RowsOf(GemmProblem p, int64_t begin, int64_t end) {
  p.x = p.x.Slice(1, begin, end);
  p.y = p.y.Slice(1, begin, end);
  if (!p.x_scale.empty()) p.x_scale = p.x_scale.Slice(1, begin, end);
  return p;
}

// Outputs [begin, end).
inline GemmProblem OutputsOf(GemmProblem p, int64_t begin, int64_t end) {
  p.w = p.w.Slice(1, begin, end);
  p.w_scale.row_begin += begin;
  if (!p.gate.empty()) {
    p.gate = p.gate.Slice(1, begin, end);
    p.gate_scale.row_begin += begin;
  }
  if (!p.bias.empty()) p.bias = p.bias.Slice(0, begin, end);
  p.y = p.y.Slice(2, begin, end);
  return p;
}

// Runs the problem with several thread counts and as every micro-architecture, then rows and
// outputs alone. The bits must be the bits of `want` each time, and nothing may be written between
// rows of y.
inline void ExpectSameBitsHoweverCut(const Kernel<GemmOp>& kernel, const GemmProblem& p, Guarded& y,
                                     const TensorView& want) {
  for (const int threads : ThreadCounts(kernel)) {
    y.Poison();
    RunPart(kernel, p, threads);
    ASSERT_TRUE(SameBits(y, want)) << threads << " threads";
    ASSERT_TRUE(y.PaddingIsPoison());
  }
  for (const Uarch uarch : UarchsOf(kernel)) {
    y.Poison();
    RunPartAs(uarch, kernel, p, 2);
    ASSERT_TRUE(SameBits(y, want)) << Name(uarch);
    for (const auto& [begin, end] : {std::pair{int64_t{0}, int64_t{1}}, {0, want.shape[1]}}) {
      y.Poison();
      RunPartPeerAs(uarch, kernel, RowsOf(p, begin, end), 2);
      ASSERT_TRUE(SameBits(p.y.Slice(1, begin, end), want.Slice(1, begin, end)))
          << "peer on " << Name(uarch) << " of " << end << " rows";
    }
  }
  const int64_t m = want.shape[1];
  const int64_t n = want.shape[2];
  for (const auto& [begin, end] : {std::pair{int64_t{0}, int64_t{1}}, {m / 2, m}, {m - 1, m}}) {
    y.Poison();
    RunPart(kernel, RowsOf(p, begin, end));
    ASSERT_TRUE(SameBits(p.y.Slice(1, begin, end), want.Slice(1, begin, end))) << "row " << begin;
  }
  for (const auto& [begin, end] : {std::pair{int64_t{0}, int64_t{1}}, {n / 2, n}, {n - 1, n}}) {
    const GemmProblem part = OutputsOf(p, begin, end);
    if (!kernel.supports(GemmOp::ShapeOf(part))) continue;
    y.Poison();
    RunPart(kernel, part);
    ASSERT_TRUE(SameBits(p.y.Slice(2, begin, end), want.Slice(2, begin, end)))
        << "outputs from " << begin;
  }
}

}  // namespace latte
