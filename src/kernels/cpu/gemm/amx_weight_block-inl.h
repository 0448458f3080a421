// Blocks of 8- and 4-bit B for AMX: 32 rows × some columns, the order in which a task walks them,
// and what there is to prefetch of a block.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_int8-inl.h"
#include "src/kernels/cpu/common/prefetch-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kInPlaceBlockK = 4096;  // columns of a block in place
constexpr int64_t kBPanelN = 2 * kTileSide;

// 32 rows of B from `output`, columns [begin, end).
struct BBlock {
  int64_t output, rows, begin, end;

  int64_t chunks() const { return (end - begin + kChunkK - 1) / kChunkK; }
};

constexpr int64_t ValuesOf(Element w_type) { return w_type == Element::kU4 ? 2 : 1; }  // per byte

inline const char* WeightAt(const GemmTask& t, int64_t output, int64_t k) {
  return static_cast<const char*>(t.w) + output * t.w_stride + k / ValuesOf(t.w_type);
}

// `bytes` of each of `rows` rows; short contiguous rows by pages.
inline BurstPrefetch BurstsOf(const char* first, int64_t stride, int64_t bytes, int64_t rows) {
  const int64_t all = rows > 0 ? (rows - 1) * stride + bytes : 0;
  if (stride >= kPage || 2 * bytes < stride)
    return {.row = first, .stride = stride, .bytes = bytes, .rows = rows};
  if (all <= kPage) return {.row = first, .stride = all, .bytes = all, .rows = 1};
  const int64_t before = ByteInPage(first);
  return {.row = first - before,
          .stride = kPage,
          .bytes = kPage,
          .rows = (before + all + kPage - 1) / kPage};
}

inline BurstPrefetch WeightBursts(const GemmTask& t, const BBlock& block) {
  const char* const first = WeightAt(t, block.output, block.begin);
  return BurstsOf(first, t.w_stride, WeightAt(t, block.output, block.end) - first, block.rows);
}

inline BurstPrefetch ScaleBursts(const GemmTask& t, const BBlock& block) {
  const ScaleGrid& g = t.grid;
  const int64_t size = g.type == Element::kF32 ? 4 : 2;
  const int64_t row = GridRow(g, block.output);
  const int64_t rows = GridRow(g, block.output + block.rows - 1) + 1 - row;
  const int64_t column = GridColumn(g, block.begin);
  const int64_t columns = GridColumn(g, block.end - 1) + 1 - column;
  return BurstsOf(static_cast<const char*>(g.scale) + (row * g.stride + column) * size,
                  g.stride * size, columns * size, rows);
}

// The blocks of a task: along K first for small M, where the sums stay in the L1; along N first for
// large M, where A stays in the L2. Prefetches cover one block or, if rows are short, all blocks of
// the same rows; with by_row the kernel prefetches weights itself.
struct BBlocks {
  int64_t n, k;
  bool k_first, short_rows, by_row;
  int64_t columns;

  int64_t across() const { return (k + columns - 1) / columns; }
  int64_t down() const { return (n + kBPanelN - 1) / kBPanelN; }
  int64_t count() const { return across() * down(); }
  int64_t together() const { return k_first && short_rows ? across() : 1; }
  BBlock At(int64_t i) const {
    const int64_t output = (k_first ? i / across() : i % down()) * kBPanelN;
    const int64_t begin = (k_first ? i % across() : i / down()) * columns;
    return {output, Min(kBPanelN, n - output), begin, Min(begin + columns, k)};
  }
  // The blocks that are prefetched with block i, the first of them.
  BBlock Together(int64_t i) const {
    BBlock out = At(i);
    if (together() > 1) out.end = k;
    return out;
  }
};

}  // namespace
}  // namespace latte::cpu
