// Difficult sizes: one below and one above every lane count, tile, page and block.
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "src/tensor/cache_format.h"
#include "tests/conformance/support/gpu.h"
#include "tests/support/sanitizers.h"

namespace latte {

struct LinearShape {
  int64_t b, m, n, k;
};

// Whether to combine entry i of one list of cases with entry j of another. ThreadSanitizer makes
// cases about ten times slower, and an emulated GPU more than that: there only one pair in `share`
// runs. Every entry still takes part if neither list is shorter than `share`.
inline bool IsRun(size_t i, size_t j, size_t share) {
  return !(testing_support::kUnderTsan || GpuIsEmulated()) || (i + j) % share == 0;
}

// Every M with every K; N and B alternate. For gemm_t the roles of N and K are exchanged.
inline std::vector<LinearShape> LinearShapes() {
  constexpr int64_t kRows[] = {0, 1, 2, 5, 7, 17, 64, 65};
  constexpr int64_t kTerms[] = {1, 15, 16, 17, 191, 192, 576, 1024, 1040, 2101};
  constexpr int64_t kOutputs[] = {1, 3, 8, 33, 64, 67, 130};
  std::vector<LinearShape> out;
  size_t turn = 0;
  for (size_t i = 0; i < std::size(kRows); ++i)
    for (size_t j = 0; j < std::size(kTerms); ++j) {
      const size_t at = turn++;
      if (!IsRun(i, j, 4)) continue;
      out.push_back({at % 3 == 0 ? 3 : 1, kRows[i], kOutputs[at % 7], kTerms[j]});
    }
  return out;
}

struct LinearTypes {
  DType x, w;
};
inline constexpr LinearTypes kLinearTypes[] = {
    {DType::kF32, DType::kF32},  {DType::kF32, DType::kBF16},  {DType::kF32, DType::kF16},
    {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16}, {DType::kBF16, DType::kF16},
    {DType::kF16, DType::kF32},  {DType::kF16, DType::kBF16},  {DType::kF16, DType::kF16},
};

// Every format of cached rows.
inline constexpr CacheDType kAllCaches[] = {
    CacheDType::Plain(DType::kF32),      CacheDType::Plain(DType::kF16),
    CacheDType::Plain(DType::kBF16),     {DType::kU8, CacheFormat::kF8},
    {DType::kU8, CacheFormat::kF8Dense}, {DType::kU8, CacheFormat::kI8},
    {DType::kU8, CacheFormat::kQ6}};

// New tokens and all tokens of a sequence.
struct SequenceShape {
  int64_t query_len, total_len;
};
struct DecodeShape {
  int64_t heads, c, r, page_tokens;
  CacheDType cache;
  float scale;
  std::vector<SequenceShape> sequences;
  int64_t pool = 0;  // pages that all sequences share for keys; 0: each has its own
};

inline std::vector<DecodeShape> DecodeShapes() {
  constexpr CacheDType kF32 = CacheDType::Plain(DType::kF32);
  constexpr CacheDType kBF16 = CacheDType::Plain(DType::kBF16);
  constexpr CacheDType kF16 = CacheDType::Plain(DType::kF16);
  constexpr CacheDType kF8 = {DType::kU8, CacheFormat::kF8};
  constexpr CacheDType kF8Dense = {DType::kU8, CacheFormat::kF8Dense};
  constexpr CacheDType kI8 = {DType::kU8, CacheFormat::kI8};
  constexpr CacheDType kQ6 = {DType::kU8, CacheFormat::kQ6};
  return {
      {1, 512, 64, 64, kBF16, 0.07f, {{1, 1}, {1, 2}, {1, 63}, {1, 64}, {1, 65}, {1, 1000}}},
      {16, 512, 64, 64, kBF16, 0.07f, {{1, 127}, {1, 129}, {1, 1}}},
      {20, 512, 64, 128, kF32, 0.07f, {{1, 65}, {3, 130}}},
      {128, 512, 64, 64, kBF16, 0.07f, {{1, 129}}},
      {16, 512, 64, 64, kF16, 0.07f, {{1, 127}, {2, 66}}},
      {3, 48, 10, 16, kF16, 0.2f, {{1, 64}, {7, 127}, {1, 1}}},
      {3, 64, 16, 16, kF32, 0.2f, {{1, 15}, {1, 16}, {1, 17}, {5, 70}, {2, 2}}},
      {16, 64, 16, 128, kBF16, 0.2f, {{9, 129}, {1, 1000}}},
      {128, 64, 16, 16, kBF16, 0.2f, {{1, 63}, {2, 66}}},
      {3, 48, 10, 16, kBF16, 0.2f, {{1, 64}, {7, 127}, {1, 1}}},
      {20, 48, 10, 64, kF32, 0.2f, {{65, 65}, {1, 2}}},
      {16, 256, 32, 64, kBF16, 0.1f, {{17, 1000}}},
      {1, 256, 32, 16, kF32, 0.1f, {{2, 65}, {64, 129}}},
      {16, 512, 0, 64, kBF16, 0.07f, {{1, 127}, {4, 66}}},
      {3, 20, 8, 16, kF32, 0.3f, {{1, 1}, {3, 3}, {10, 40}}},
      {33, 20, 8, 128, kBF16, 0.3f, {{1, 129}, {2, 64}}},
      // Odd numbers of keys around blocks of 128; widths around vectors of 32.
      {7, 33, 31, 16, kBF16, 0.3f, {{1, 255}, {1, 256}, {3, 258}, {1, 3}}},
      {5, 79, 0, 32, kBF16, 0.3f, {{2, 128}, {1, 385}}},
      {2, 1, 1, 64, kBF16, 1.0f, {{1, 5}, {2, 67}}},
      {2, 1, 1, 64, kF32, 1.0f, {{1, 5}, {2, 67}}},
      {1, 1024, 128, 16, kBF16, 0.05f, {{1, 17}}},
      // Numbers of keys around splits of 1024, with tokens on both sides of a border.
      {3, 48, 10, 16, kBF16, 0.2f, {{3, 1025}, {1, 1024}, {2, 2048}, {5, 2051}, {1, 3000}}},
      {5, 33, 7, 64, kF32, 0.2f, {{4, 1026}, {1, 4100}, {70, 1060}}},
      {64, 64, 16, 64, kBF16, 0.2f, {{2, 2100}}},
      {63, 64, 16, 64, kF16, 0.2f, {{1, 1500}}},
      // Quantised cache rows; widths around their groups of 64 and 128.
      {16, 512, 64, 64, kF8, 0.07f, {{1, 127}, {2, 66}, {1, 1}}},
      {7, 33, 31, 16, kF8, 0.3f, {{1, 255}, {3, 258}}},
      {1, 512, 64, 64, kF8, 0.07f, {{1, 1}, {1, 65}, {70, 130}, {1, 1100}}},
      {3, 256, 20, 16, kF8, 0.1f, {{5, 259}, {2, 1025}}},
      {2, 128, 64, 32, kF8Dense, 0.2f, {{3, 190}, {1, 63}}},
      {70, 130, 6, 16, kF8, 0.2f, {{1, 1100}}},
      {16, 512, 64, 64, kF8Dense, 0.07f, {{1, 127}, {2, 66}, {1, 1}}},
      {3, 79, 9, 16, kF8Dense, 0.3f, {{5, 1030}}},
      {9, 79, 9, 16, kF8Dense, 0.3f, {{5, 1030}}},
      {9, 160, 30, 16, kF8, 0.3f, {{3, 258}}},
      {16, 512, 64, 64, kI8, 0.07f, {{1, 127}, {2, 66}, {1, 1}, {1, 1200}}},
      {128, 512, 64, 64, kI8, 0.07f, {{1, 129}}},
      {7, 33, 31, 16, kI8, 0.3f, {{1, 255}, {3, 258}, {5, 1026}}},
      // Widths that the tile kernels support: three groups of 16 rows, some of which attend to
      // nothing in a block.
      {9, 128, 0, 32, kI8, 0.3f, {{5, 259}, {3, 1026}, {1, 33}}},
      {40, 64, 64, 16, kI8, 0.2f, {{2, 257}, {1, 1}, {1, 15}}},
      {5, 130, 0, 32, kI8, 0.3f, {{2, 128}, {1, 385}}},
      {1, 256, 32, 16, kI8, 0.1f, {{2, 65}, {64, 129}}},
      {20, 512, 64, 64, kI8, 0.07f, {{3, 258}, {1, 255}}},
      {2, 1, 1, 64, kI8, 1.0f, {{1, 5}, {2, 67}}},
      {5, 100, 20, 24, kI8, 0.2f, {{1, 200}, {3, 530}}},  // page sizes that are not a multiple of
                                                          // 16
      {3, 64, 512, 16, kI8, 0.05f, {{2, 40}}},
      {3, 96, 8, 16, kI8, 0.2f, {{2, 80}}},   // the last row's last 64 columns pass its end
      {3, 72, 10, 24, kI8, 0.2f, {{1, 72}}},  // the same for a copied row
      {16, 512, 64, 64, kQ6, 0.07f, {{1, 127}, {2, 66}, {1, 1}}},
      {3, 65, 63, 16, kQ6, 0.3f, {{1, 255}, {3, 1026}}},
      {20, 65, 63, 16, kQ6, 0.3f, {{3, 300}}},
      // Scores of several hundred: only a few keys have weight.
      {16, 512, 64, 64, kBF16, 10.0f, {{2, 200}}},
  };
}

struct MhaShape {
  int64_t queries, keys, heads, n, r, v;
  int64_t q_begin, key_begin;
  bool shared_rope;  // one rope key for all heads
};

inline std::vector<MhaShape> MhaShapes() {
  return {
      {1, 1, 1, 128, 64, 128, 0, 0, true},
      {1, 65, 16, 128, 64, 128, 64, 0, true},
      {7, 7, 3, 128, 64, 128, 0, 0, false},
      {33, 33, 16, 128, 64, 128, 0, 0, true},
      {65, 129, 3, 16, 8, 16, 64, 0, true},
      {2, 64, 20, 48, 10, 20, 62, 0, false},
      {63, 200, 3, 17, 15, 1, 137, 0, true},
      {129, 129, 1, 192, 64, 191, 0, 0, false},
      {40, 100, 2, 24, 8, 33, 140, 40, true},  // keys begin inside a block
      {70, 64, 2, 24, 8, 33, 100, 128, true},  // the first queries attend to nothing
      {5, 64, 2, 24, 8, 33, 10, 64, false},    // no query attends to anything
      {3, 40, 2, 24, 0, 16, 20, 0, false},     // no rope part; keys after the last query
      {1, 1000, 3, 128, 64, 128, 999, 0, true},
      {20, 130, 128, 16, 8, 16, 110, 0, true},
      {2, 3, 2, 256, 256, 512, 1, 0, false},
      // More queries than a task takes; keys that begin at an odd offset, after the first block.
      {400, 420, 2, 24, 8, 33, 20, 0, true},
      {203, 333, 1, 128, 64, 128, 130, 0, true},
      {37, 150, 2, 31, 2, 65, 300, 161, false},
      {9, 129, 3, 1, 0, 1, 120, 0, false},
      // More queries than a task of a tile kernel takes, several of its blocks; a last group of one
      // query.
      {545, 600, 1, 40, 24, 20, 55, 0, false},
      {17, 700, 2, 64, 32, 48, 640, 100, true},
      // Enough heads that tasks take the maximum number of queries.
      {545, 560, 4, 24, 8, 33, 15, 0, true},
  };
}

}  // namespace latte
