// fp8 weights in the cases where M = 1 could differ from larger M: sums so small that they are
// flushed, and numbers that need a slower path.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/run_kernels.h"

namespace latte::gemm_fp8_test {
namespace {

constexpr int64_t kRows = 5;
constexpr int64_t kOutputs = 37;
constexpr int64_t kColumns = 640;

// A weight with given codes, and activations ±x.
struct Fp8Case {
  Fp8Case(const std::vector<uint8_t>& codes, float x_size, float scale_size, int64_t columns)
      : x(DType::kBF16, {1, kRows, kColumns}),
        w(DType::kF8E4M3, {1, kOutputs, kColumns}),
        scale(DType::kF32, {1, CeilDiv(kColumns, columns)}),
        y(DType::kF32, {1, kRows, kOutputs}) {
    std::mt19937 rng(8);
    for (int64_t i = 0; i < kOutputs * kColumns; ++i)
      w.Ptr<uint8_t>()[i] = codes[rng() % codes.size()];
    for (int64_t i = 0; i < kRows * kColumns; ++i)
      x.Ptr<uint16_t>()[i] =
          FloatToBF16(x_size * (static_cast<float>(rng() % 512) - 255.5f) / 256.0f);
    for (int64_t i = 0; i < CeilDiv(kColumns, columns); ++i) scale.Ptr<float>()[i] = scale_size;
    part.x = x;
    part.w = w;
    part.y = y;
    part.w_scale.scale = scale;
    part.w_scale.columns = columns;
  }

  // The call for rows [begin, end) of the activations.
  GemmProblem Rows(int64_t begin, int64_t end) const {
    GemmProblem out = part;
    out.x = out.x.Slice(1, begin, end);
    out.y = out.y.Slice(1, begin, end);
    return out;
  }

  Tensor x, w, scale, y;
  GemmProblem part;
};

// Every row alone, and pairs of rows, give the bits of the whole call.
void ExpectRowsAlone(const Fp8Case& c) {
  ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(c.part), [&](const Kernel<GemmOp>& kernel) {
    SCOPED_TRACE(kernel.name);
    RunPart(kernel, c.part);
    Tensor all(DType::kF32, {1, kRows, kOutputs});
    std::memcpy(all.Ptr<float>(), c.y.Ptr<float>(), kRows * kOutputs * sizeof(float));
    for (int64_t rows = 1; rows <= kRows; ++rows)
      for (const Uarch uarch : UarchsOf(kernel)) {
        RunPartAs(uarch, kernel, c.Rows(0, rows));
        EXPECT_TRUE(SameBits(c.y, all)) << rows << " rows, " << Name(uarch);
        RunPartPeerAs(uarch, kernel, c.Rows(0, rows));
        EXPECT_TRUE(SameBits(c.y, all)) << rows << " rows, peer on " << Name(uarch);
      }
    for (int64_t rows = 1; rows <= 2; ++rows)
      for (int64_t at = 0; at + rows <= kRows; ++at) {
        RunPart(kernel, c.Rows(at, at + rows));
        EXPECT_TRUE(SameBits(c.y, all)) << rows << " rows from " << at;
      }
  });
}

const std::vector<uint8_t> kNormals = {0x08, 0x38, 0x7e, 0x88, 0xb9, 0xfe, 0x45, 0xc3};

TEST(LinearFp8Conformance, SumsAreFlushedAlikeForOneRowAndMany) {
  for (const float size : {1.0f, 0x1p-118f, 0x1p-122f, 0x1p-126f, 0x1p-130f})
    for (const int64_t columns : {int64_t{128}, int64_t{256}, kColumns}) {
      SCOPED_TRACE(fmt::format("activations of {}, {} columns", size, columns));
      ExpectRowsAlone({kNormals, size, 0x1p-6f, columns});
      ExpectRowsAlone({kNormals, size, 0x1p6f, columns});
    }
}

TEST(LinearFp8Conformance, ZerosAndSubnormalsAlikeForOneRowAndMany) {
  std::vector<uint8_t> codes = kNormals;
  for (const uint8_t code : {0x00, 0x80, 0x01, 0x87, 0x04}) codes.push_back(code);
  for (const int64_t columns : {int64_t{128}, kColumns})
    ExpectRowsAlone({codes, 1.0f, 1.0f, columns});
}

TEST(LinearFp8Conformance, ANaNReachesItsOutputAndNoOther) {
  for (const int64_t at : {int64_t{0}, int64_t{130}, kColumns - 1}) {
    const Fp8Case c(kNormals, 1.0f, 1.0f, 128);
    c.w.Ptr<uint8_t>()[3 * kColumns + at] = 0xff;
    ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(c.part), [&](const Kernel<GemmOp>& kernel) {
      for (const int64_t rows : {int64_t{1}, int64_t{2}, kRows}) {
        RunPart(kernel, c.Rows(0, rows));
        for (int64_t n = 0; n < kOutputs; ++n)
          EXPECT_EQ(std::isnan(c.y.Ptr<float>()[n]), n == 3)
              << kernel.name << ' ' << rows << ' ' << n;
      }
    });
  }
}

}  // namespace
}  // namespace latte::gemm_fp8_test
