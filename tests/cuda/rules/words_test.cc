// The words compute what device.cuh says.
#include <bit>
#include <cmath>
#include <limits>

#include "src/tensor/float_bits.h"
#include "tests/cuda/rules/rules.h"

namespace latte::cuda::words_test {
namespace {

using namespace emulator;

TEST(Words, Shuffles) {
  ExpectSilent(RunBlock(64, [] {
    const int lane = Thread() % 32;
    EXPECT_EQ(ShuffleXor(Thread(), 5), Thread() ^ 5);
    EXPECT_EQ(ShuffleXor(float(Thread()), 16), float(Thread() ^ 16));
    EXPECT_EQ(ShuffleDown(Thread(), 3), lane > 28 ? Thread() : Thread() + 3);
    EXPECT_EQ(ShuffleDown(float(lane), 31), lane == 0 ? 31.0f : float(lane));
    EXPECT_EQ(Broadcast(Thread(), 7), Thread() - lane + 7);
    EXPECT_EQ(Broadcast(float(lane), 0), 0.0f);
  }));
  ExpectError(RunBlock(32, [] { ShuffleXor(1, 32); }), "a shuffle past the warp");
}

TEST(Words, FmaRoundsOnce) {
  const float a = 1 + 0x1p-12f;
  EXPECT_EQ(Fma(a, a, -1.0f), 0x1p-11f + 0x1p-24f);
  EXPECT_EQ(Sub(Mul(a, a), 1.0f), 0x1p-11f);  // the product is rounded first
  EXPECT_EQ(Add(1.0f, 0x1p-25f), 1.0f);
  EXPECT_EQ(Div(1.0f, 3.0f), 1.0f / 3.0f);
  EXPECT_EQ(Sqrt(2.0f), std::sqrt(2.0f));
}

TEST(Words, MaxAndMinPreferNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Max(nan, 1.0f), 1.0f);
  EXPECT_EQ(Max(-2.0f, nan), -2.0f);
  EXPECT_EQ(Min(1.0f, 2.0f), 1.0f);
  EXPECT_EQ(Min(nan, 2.0f), 2.0f);
}

// PTX's cvt makes 0x7fff of every NaN; for numbers it rounds as the product does.
TEST(Words, PackBf16RoundsAsTheProduct) {
  for (uint32_t high = 0; high < 65536; ++high)
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float x = std::bit_cast<float>(high << 16 | low);
      const uint32_t expected = std::isnan(x) ? 0x7fffu : FloatToBF16(x);
      ASSERT_EQ(PackBf16(x, 1.0f), expected | 0x3f80u << 16) << high << " " << low;
      ASSERT_EQ(PackBf16(-1.0f, x), 0xbf80u | expected << 16) << high << " " << low;
    }
}

TEST(Words, LoadMatrixGivesRowsAndColumns) {
  ExpectSilent(RunBlock(32, [] {
    // Number 8·row + column in matrix i/64, i % 64; two in a word.
    for (int i = Thread(); i < 128; i += 32) StoreShared(Word(i), 2 * i | (2 * i + 1) << 16);
    SyncThreads();
    uint32_t r[4], t[4];
    const SharedAddr row = SharedBase() + 16 * static_cast<SharedAddr>(Thread());
    LoadMatrix4(row, r);
    LoadMatrix4Transposed(row, t);
    const uint32_t g = static_cast<uint32_t>(Thread()) / 4,
                   c = static_cast<uint32_t>(Thread()) % 4 * 2;
    for (uint32_t m = 0; m < 4; ++m) {
      EXPECT_EQ(r[m], (64 * m + 8 * g + c) | (64 * m + 8 * g + c + 1) << 16);
      EXPECT_EQ(t[m], (64 * m + 8 * c + g) | (64 * m + 8 * (c + 1) + g) << 16);
    }
  }));
}

}  // namespace
}  // namespace latte::cuda::words_test
