// Products of bytes that are long or have many rows of x give the bits of single rows: a kernel
// walks weights in another way for few rows than for some or many, and in passes over K.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/conformance/compare.h"
#include "tests/conformance/quant_case.h"
#include "tests/conformance/rows.h"

namespace latte {
namespace {

struct BytesShape {
  int64_t m, n, k;
};

void ExpectBitsOfSingleRows(const BytesShape& s, DType w_type, const QuantBlocks& blocks) {
  std::mt19937 rng(5);
  const QuantWeight w(w_type, 1, s.n, s.k, blocks, rng);
  const QuantInput x(DType::kI8, 1, s.m, s.k, 128, rng);
  const Guarded bias(DType::kF32, {s.n});
  FillRandom(bias, rng);
  Guarded y(DType::kF32, {1, s.m, s.n}, kQuantPad);
  LinearPart p = PartOf(x, w, y);
  p.bias = bias;
  const auto rows_of = [&p](const TensorView& to, int64_t begin, int64_t end) {
    LinearPart part = p;
    part.x = p.x.Slice(1, begin, end);
    part.x_scale = p.x_scale.Slice(1, begin, end);
    part.y = to.Slice(1, begin, end);
    return part;
  };
  ForEachFastRow<LinearOp>(LinearOp::ShapeOf(p), [&](const Kernel<LinearOp>& row) {
    Tensor single(DType::kF32, {1, s.m, s.n});
    for (int64_t m = 0; m < s.m; ++m) RunPart(row, rows_of(single, m, m + 1));
    for (const int threads : {1, 2, 3}) {
      y.Poison();
      RunPart(row, p, threads);
      ASSERT_TRUE(SameBits(y, single)) << threads << " threads";
    }
    for (int64_t m = 2; m < std::min<int64_t>(s.m, 16); ++m) {
      y.Poison();
      RunPart(row, rows_of(y, 0, m));
      ASSERT_TRUE(SameBits(y.view().Slice(1, 0, m), single.view().Slice(1, 0, m))) << m << " rows";
    }
  });
}

TEST(LinearBytesConformance, LongAndLargeProductsGiveTheBitsOfSingleRows) {
  for (const QuantBlocks& blocks : {QuantBlocks{1, 0, 0, 0, DType::kBF16},
                                    {1, 128, 0, 0, DType::kF16},
                                    {1, 32, 0, 0, DType::kBF16},
                                    {1, 32, 3, 64, DType::kF32, true}})
    for (const DType w_type : {DType::kI8, DType::kU4})
      for (const BytesShape& s : {BytesShape{200, 150, 1301}, {16, 70, 8330}, {3, 21, 16700}}) {
        SCOPED_TRACE(fmt::format("M={} N={} K={} {} blocks of {}{}", s.m, s.n, s.k, Name(w_type),
                                 blocks.columns, blocks.zeros ? " with zeros" : ""));
        ExpectBitsOfSingleRows(s, w_type, blocks);
        if (HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace latte
