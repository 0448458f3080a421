#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "src/kernels/cpu/common/prefetch-inl.h"
#include "src/kernels/cpu/common/prefetch_weights-inl.h"

namespace latte::cpu::prefetch_test {
namespace {

struct Rows {
  int64_t stride, bytes, count;
};
// Contiguous rows shorter and longer than a page, rows with gaps, partial lines.
constexpr Rows kRows[] = {{512, 512, 40}, {7168, 7168, 3}, {1000, 1000, 20}, {2048, 512, 9},
                          {100, 30, 7},   {4096, 4096, 5}, {6000, 4500, 4},  {64, 64, 1}};

struct Memory {
  std::vector<char> bytes = std::vector<char>(1 << 17);

  // Starts `offset` bytes behind the beginning of a page.
  const char* At(int64_t offset) const {
    const char* const begin = bytes.data();
    return begin + (kPage - ByteInPage(begin)) % kPage + offset;
  }
};

int64_t LineOf(const char* p) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p)) / kCacheLine;
}
// The lines of rows in memory order. Lines of a row with gaps count from its first byte.
std::vector<int64_t> LinesOf(const char* row, const Rows& rows) {
  std::vector<int64_t> lines;
  const bool gapless = rows.stride == rows.bytes;
  const char* const end = row + rows.count * rows.stride;
  for (const char* p = row; gapless && LineOf(p) <= LineOf(end - 1); p += kCacheLine)
    lines.push_back(LineOf(p));
  for (int64_t i = 0; i < rows.count && !gapless; ++i)
    for (int64_t at = 0; at < rows.bytes; at += kCacheLine)
      lines.push_back(LineOf(row + i * rows.stride + at));
  return lines;
}

// Appends the lines of the next run and returns their number.
int64_t Append(SequentialPrefetch& prefetch, std::vector<int64_t>& lines) {
  const SequentialPrefetch::Run run = prefetch.Next();
  for (int64_t i = 0; i < run.count; ++i) lines.push_back(LineOf(run.line + i * kCacheLine));
  return run.count;
}

TEST(SequentialPrefetch, RunsAreTheLinesOfTheRowsInMemoryOrder) {
  const Memory memory;
  for (const Rows& rows : kRows)
    for (const int64_t offset : {0, 64, 4032, 5, 2000})
      for (const int64_t runs : {1, 7, 64, 1000}) {
        const char* const row = memory.At(offset);
        SequentialPrefetch prefetch(row, rows.stride, rows.bytes, rows.count, CacheLevel::kL2);
        prefetch.SpreadOverRuns(runs);
        std::vector<int64_t> lines;
        int64_t calls = 0;
        while (Append(prefetch, lines) > 0) ++calls;
        EXPECT_EQ(lines, LinesOf(row, rows)) << rows.stride << " " << rows.bytes << " " << offset;
        // Runs end with a row, or where rows that do not begin with a line meet a page.
        EXPECT_LE(calls, std::max(runs, rows.count) + 1) << rows.stride << " " << offset;
      }
}

TEST(SequentialPrefetch, ContinuesWithASecondRegion) {
  const Memory memory;
  for (const Rows& rows : kRows) {
    const char* const first = memory.At(128);
    const char* const second = memory.At(1 << 16);
    SequentialPrefetch prefetch(first, rows.stride, rows.bytes, rows.count, CacheLevel::kL1, 10);
    const Rows two = {rows.stride, rows.bytes, Min(rows.count, 2)};
    prefetch.Then(second, two.bytes, two.count);
    std::vector<int64_t> lines;
    while (Append(prefetch, lines) > 0) {
    }
    std::vector<int64_t> want = LinesOf(first, rows);
    for (const int64_t line : LinesOf(second, two)) want.push_back(line);
    EXPECT_EQ(lines, want) << rows.stride;
  }
}

TEST(SequentialPrefetch, SetRunLengthCountsTheRuns) {
  const Memory memory;
  for (const Rows& rows : kRows)
    for (const int64_t length : {1, 3, 8, 64, 100}) {
      SequentialPrefetch prefetch(memory.At(0), rows.stride, rows.bytes, rows.count,
                                  CacheLevel::kL2);
      const int64_t runs = prefetch.SetRunLength(length);
      std::vector<int64_t> lines;
      int64_t calls = 0;
      while (Append(prefetch, lines) > 0) ++calls;
      EXPECT_EQ(calls, runs) << rows.stride << " " << length;
    }
  EXPECT_EQ(SequentialPrefetch().SetRunLength(4), 0);
}

TEST(BurstPrefetch, PrefetchesAllRowsInTheStepsItIsSpreadOver) {
  const Memory memory;
  for (const int64_t rows : {1, 7, 32})
    for (const int64_t bytes : {128, 1000, 4096})
      for (const int64_t steps : {1, 5, 100}) {
        BurstPrefetch prefetch = {
            .row = memory.At(0), .stride = 4096, .bytes = bytes, .rows = rows};
        prefetch.Spread(steps);
        for (int64_t i = 0; i < steps; ++i) prefetch.PrefetchNext();
        EXPECT_GE(prefetch.at, bytes) << rows << " " << steps;
      }
}

TEST(PrefetchDistance, LeadsIntoTheNextTaskAtTheEndOfB) {
  const Memory memory;
  const Tuning tuning = {.prefetch_level = CacheLevel::kL2};
  const GemmTask next = {.w = memory.At(1 << 16)};
  const GemmTask t = {
      .w = memory.At(64), .w_stride = 2048, .n = 20, .k = 2048, .next = &next, .tuning = &tuning};
  const PrefetchDistance distance = SequentialDistanceOf<I8>(t);
  const int64_t bytes = t.n * t.w_stride;
  for (int64_t at = 0; at < bytes; at += kCacheLine) {
    const int64_t to = at + kPrefetchBytesL2;
    const char* const want = static_cast<const char*>(to < bytes ? t.w : next.w) + to % bytes;
    EXPECT_EQ(AddressOf<I8>(t, 0, at) + distance.At(at), want) << at;
  }
}

TEST(PrefetchDistance, LeadsIntoTheRowThatTakesTheRowsPlace) {
  const Memory memory;
  const GemmTask t = {.w = memory.At(0), .w_stride = 2048, .n = 12, .k = 2048};
  const PrefetchDistance distance = StridedDistanceOf<I8>(t, 4, 4, 0, t.k);
  for (int64_t at = 0; at < t.k; at += kCacheLine) {
    const int64_t to = at + kStridedPrefetchBytes;
    const char* const want = AddressOf<I8>(t, to < t.k ? 4 : 8, to % t.k);
    EXPECT_EQ(AddressOf<I8>(t, 4, at) + distance.At(at), want) << at;
  }
}

}  // namespace
}  // namespace latte::cpu::prefetch_test
