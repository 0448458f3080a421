// Cached rows: the distance of each format from the appended numbers, and that every kernel reads
// the same numbers.
#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/shapes.h"

namespace latte::cached_row_test {
namespace {

struct Widths {
  int64_t c, r;
};
constexpr Widths kWidths[] = {{512, 64}, {256, 32}, {256, 64}, {512, 0},
                              {1, 1},    {33, 31},  {130, 6},  {65, 63}};

// Rows in pages of 16, appended by the reference.
struct Rows {
  Rows(CacheDType cache, Widths w, std::mt19937& rng)
      : latent(DType::kF32, {kCount, w.c}, 3),
        rope(DType::kF32, {kCount, w.r}, 2),
        pages(cache.dtype, {4, 16, cache.Width(w.c, w.r)}),
        format{cache.kind} {
    FillRandom(latent, rng);
    FillRandom(rope, rng);
    for (int64_t t = 0; t < kCount; ++t) slots.push_back(table[t / 16] * 16 + t % 16);
  }
  AppendOp::Params Params() const { return {latent, rope, pages, slots, format}; }
  void Append() const { RunRef<AppendOp>(Params()); }
  GatherPagesOp::Params Gather(const TensorView& y, int64_t begin) const {
    return {pages, table, begin, y, latent.view().shape[1], format};
  }

  static constexpr int64_t kCount = 37;
  Guarded latent, rope, pages;
  CacheRowFormat format;
  std::vector<int32_t> table = {2, 0, 3};
  std::vector<int64_t> slots;
};

TEST(CachedRowConformance, EveryRowReadsTheSameNumbers) {
  std::mt19937 rng(9);
  for (const CacheDType cache : kAllCaches)
    for (const Widths w : kWidths) {
      SCOPED_TRACE(fmt::format("{} C={} R={}", Name(cache), w.c, w.r));
      const Rows rows(cache, w, rng);
      rows.Append();
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 37}, {15, 33}, {36, 36}}) {
        Tensor want(DType::kF32, {end - begin, w.c + w.r});
        RunRef<GatherPagesOp>(rows.Gather(want, begin));
        const Guarded y(DType::kF32, {end - begin, w.c + w.r});
        ForEachFastKernel<GatherPagesOp>(GatherPagesOp::ShapeOf(rows.Gather(y, begin)),
                                         [&](const Kernel<GatherPagesOp>& kernel) {
                                           for (const int threads : {1, 3}) {
                                             RunKernel(kernel, rows.Gather(y, begin), threads);
                                             ASSERT_TRUE(SameBits(y, want));
                                           }
                                         });
        if (HasFatalFailure()) return;
      }
    }
}

// Half the distance between neighbouring numbers of a format, for numbers between −1 and 1.
double Step(CacheFormat kind, bool rope, double x) {
  switch (kind) {
    case CacheFormat::kF8:
    case CacheFormat::kF8Dense:
      return std::abs(x) / 16 + 0x1p-10;
    case CacheFormat::kI8:
      return rope ? 1.01 / (2 * 32639) + 0x1p-22 : 1.001 / 254;
    case CacheFormat::kQ6:
      // Scales are rounded up to bf16.
      return (rope ? 1.01 / (2 * 2047) : 1.01 / 30) * (1 + 0x1p-7);
    case CacheFormat::kPlain:
      break;
  }
  return 0;
}

TEST(CachedRowConformance, NumbersComeBackWithinHalfAStep) {
  std::mt19937 rng(10);
  for (const CacheDType cache : kAllCaches) {
    if (cache.kind == CacheFormat::kPlain) continue;
    for (const Widths w : kWidths) {
      SCOPED_TRACE(fmt::format("{} C={} R={}", Name(cache), w.c, w.r));
      const Rows rows(cache, w, rng);
      rows.Append();
      Tensor y(DType::kF32, {Rows::kCount, w.c + w.r});
      RunRef<GatherPagesOp>(rows.Gather(y, 0));
      for (int64_t t = 0; t < Rows::kCount; ++t)
        for (int64_t i = 0; i < w.c + w.r; ++i) {
          const double x = static_cast<double>(i < w.c ? GetValue(rows.latent, t, i)
                                                       : GetValue(rows.rope, t, i - w.c));
          const bool bf16 = cache.kind == CacheFormat::kF8 && i >= w.c;
          ASSERT_NEAR(static_cast<double>(GetValue(y, t, i)), x,
                      bf16 ? std::abs(x) * 0x1p-8 : Step(cache.kind, i >= w.c, x))
              << t << ", " << i;
        }
    }
  }
}

// Rows on which formats can differ by a bit: the numbers of row `t` are of one kind.
void FillHard(const TensorView& rows, std::mt19937& rng) {
  const int64_t width = rows.shape[1];
  for (int64_t t = 0; t < rows.shape[0]; ++t)
    for (int64_t i = 0; i < width; ++i) {
      float& x = rows.Row<float>(t)[i];
      const float sign = rng() % 2 == 0 ? 1.0f : -1.0f;
      const auto halves = static_cast<float>(rng() % 255) / 2;  // ties, with 127 below
      switch (t % 9) {
        case 0:
          x = sign * 0.0f;
          break;
        case 1:
          x = i == width / 2 ? 127.0f : sign * halves;
          break;
        case 2:  // of e4m3: the scale is a power of two exactly, and the next float above it
          x = i % 128 == 0 ? (i == 0 ? 448.0f : std::nextafter(448.0f, 1e9f)) : sign * halves;
          break;
        case 3:
          x *= 0x1p-99f;
          break;
        case 4:
          x *= 0x1p-126f;
          break;
        case 5:
          x *= 0x1p120f;
          break;
        case 6:
          x = i == width - 1 ? std::copysign(std::nanf(""), sign) : x;
          break;
        case 7:
          x = i == 0 ? sign * INFINITY : x;
          break;
        default:
          break;
      }
    }
}

TEST(CachedRowConformance, AppendWritesTheBytesOfTheReference) {
  std::mt19937 rng(12);
  for (const CacheDType cache : kAllCaches)
    for (const Widths w : kWidths) {
      SCOPED_TRACE(fmt::format("{} C={} R={}", Name(cache), w.c, w.r));
      Rows rows(cache, w, rng);
      if (cache.kind == CacheFormat::kF8Dense) rows.format.descale = 0.3f;
      FillHard(rows.latent, rng);
      FillHard(rows.rope, rng);
      rows.Append();
      const std::vector<std::byte> want = rows.pages.Bytes();
      ForEachFastKernel<AppendOp>(AppendOp::ShapeOf(rows.Params()),
                                  [&](const Kernel<AppendOp>& kernel) {
                                    rows.pages.Poison();
                                    RunKernel(kernel, rows.Params(), 2);
                                    ASSERT_TRUE(rows.pages.Bytes() == want);
                                  });
      if (HasFatalFailure()) return;
    }
}

// NaN and infinity are not stored as ordinary numbers and do not end the process.
TEST(CachedRowConformance, NanStaysNanAndInfinitySaturates) {
  std::mt19937 rng(11);
  for (const CacheDType cache : kAllCaches) {
    if (cache.kind == CacheFormat::kPlain) continue;
    SCOPED_TRACE(Name(cache));
    const Rows rows(cache, {512, 64}, rng);
    rows.latent.view().Row<float>(1)[7] = std::nanf("");
    rows.latent.view().Row<float>(2)[7] = -INFINITY;
    for (int64_t i = 0; i < 512; ++i) rows.latent.view().Row<float>(3)[i] = 0;
    rows.Append();
    Tensor y(DType::kF32, {Rows::kCount, 576});
    RunRef<GatherPagesOp>(rows.Gather(y, 0));
    EXPECT_TRUE(std::isnan(GetValue(y, 1, 7)));
    EXPECT_LE(GetValue(y, 2, 7), -0.9f);
    EXPECT_TRUE(std::isfinite(GetValue(y, 2, 7)));
    for (int64_t i = 0; i < 512; ++i) EXPECT_EQ(GetValue(y, 3, i), 0.0f);
  }
}

TEST(CachedRow, BytesPerToken) {
  EXPECT_EQ((CacheDType{DType::kU8, CacheFormat::kF8}.RowBytes(512, 64)), 656);
  EXPECT_EQ((CacheDType{DType::kU8, CacheFormat::kF8Dense}.RowBytes(512, 64)), 576);
  EXPECT_EQ((CacheDType{DType::kU8, CacheFormat::kI8}.RowBytes(512, 64)), 648);
  // 6.25 bits per element
  EXPECT_EQ((CacheDType{DType::kU8, CacheFormat::kQ6}.RowBytes(512, 64)), 450);
}

TEST(CachedRow, F8RoundsToNearestEvenAndSaturates) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    const float x = F8E4M3ToFloat(static_cast<uint8_t>(code));
    EXPECT_EQ(FloatToF8E4M3(x), code);
  }
  EXPECT_EQ(F8E4M3ToFloat(FloatToF8E4M3(1.0625f)), 1.0f);  // half-way: rounds to even
  EXPECT_EQ(F8E4M3ToFloat(FloatToF8E4M3(1.1875f)), 1.25f);
  EXPECT_EQ(F8E4M3ToFloat(FloatToF8E4M3(1e30f)), 448.0f);
  EXPECT_EQ(F8E4M3ToFloat(FloatToF8E4M3(-INFINITY)), -448.0f);
  EXPECT_EQ(F8E4M3ToFloat(FloatToF8E4M3(0x1p-10f)), 0.0f);  // half of the smallest: rounds to even
}

}  // namespace
}  // namespace latte::cached_row_test
