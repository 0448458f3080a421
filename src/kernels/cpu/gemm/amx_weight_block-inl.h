// Blocks of 8- and 4-bit B for AMX: 32 rows × some columns, the order in which a task walks them,
// and the prefetch of the next one.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_int8-inl.h"
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

// Prefetches the weights and scales of the next block in parts.
struct BlockPrefetch {
  BurstPrefetch weights = {}, scales = {};
  const GemmTask* task = nullptr;             // of the next block; null: none
  BBlock block = {};                          // the next one
  int64_t weight_lines = 0, scale_lines = 0;  // per part
  int64_t chunks = 0;                         // chunks that are multiplied meanwhile

  void SetParts(int64_t parts) {
    weight_lines = weights.lines() / parts + 1;
    scale_lines = scales.lines() / parts + 1;
  }
  void PrefetchNext() {
    weights.PrefetchNext(weight_lines);
    scales.PrefetchNext(scale_lines);
  }
};

constexpr int64_t ValuesOf(Element w_type) { return w_type == Element::kU4 ? 2 : 1; }  // per byte

inline const char* WeightAt(const GemmTask& t, int64_t output, int64_t k) {
  return static_cast<const char*>(t.w) + output * t.w_stride + k / ValuesOf(t.w_type);
}

// `bytes` of each of `rows` rows; short contiguous rows by pages.
inline BurstPrefetch BurstsOf(const char* first, int64_t stride, int64_t bytes, int64_t rows) {
  const int64_t all = rows > 0 ? (rows - 1) * stride + bytes : 0;
  if (stride >= kPage || 2 * bytes < stride) return {first, stride, bytes, rows};
  if (all <= kPage) return {first, all, all, 1};
  const int64_t before = static_cast<int64_t>(reinterpret_cast<uintptr_t>(first) % kPage);
  return {first - before, kPage, kPage, (before + all + kPage - 1) / kPage};
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
// large M, where A stays in the L2. Prefetches cover one block or, if rows are short, all blocks of the
// same rows; with by_row the kernel prefetches weights itself.
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

inline BlockPrefetch PrefetchOf(const GemmTask& t, const BBlock& block, bool by_row) {
  BlockPrefetch ahead;
  if (!by_row) ahead.weights = WeightBursts(t, block);
  ahead.scales = ScaleBursts(t, block);
  return ahead;
}

// Prefetch of the block after block i, which may belong to the next task; blocks_of(t): the blocks of
// that task.
template <class BlocksOf>
inline BlockPrefetch NextPrefetchOf(const GemmTask& task, const BBlocks& blocks, int64_t i,
                                    const BlocksOf& blocks_of) {
  const GemmTask* t = &task;
  const int64_t next = i + blocks.together();
  BBlock block = {};
  if (next < blocks.count())
    block = blocks.Together(next);
  else if ((t = t->next) != nullptr)
    block = blocks_of(*t).Together(0);
  BlockPrefetch ahead;
  if (t != nullptr) ahead = PrefetchOf(*t, block, blocks.by_row);
  ahead.chunks = blocks.Together(i).chunks();
  return ahead;
}

// Calls multiply(block) for all blocks of a task; `ahead` prefetches the next block.
template <class BlocksOf, class Multiply>
inline void ForEachBlock(const GemmTask& t, const BlocksOf& blocks_of, BlockPrefetch& ahead,
                         const Multiply& multiply) {
  const BBlocks blocks = blocks_of(t);
  ahead = PrefetchOf(t, blocks.Together(0), blocks.by_row);
  ahead.SetParts(1);
  ahead.PrefetchNext();
  for (int64_t i = 0; i < blocks.count(); ++i) {
    if (i % blocks.together() == 0) ahead = NextPrefetchOf(t, blocks, i, blocks_of);
    ahead.task = i + 1 < blocks.count() ? &t : t.next;
    if (ahead.task == &t)
      ahead.block = blocks.At(i + 1);
    else if (ahead.task != nullptr)
      ahead.block = blocks_of(*ahead.task).At(0);
    multiply(blocks.At(i));
  }
}

}  // namespace
}  // namespace latte::cpu
