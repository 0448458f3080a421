// Blocks of a weight of one byte or less: 32 outputs × some columns, in which order a task takes
// them, and how memory is asked for the one after.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/common/amx_int8-inl.h"
#include "src/kernels/cpu/common/tile-inl.h"
#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

constexpr int64_t kWideByteBlock = 4096;  // columns that are multiplied where they lie
constexpr int64_t kBytePanelRows = 2 * kTileSide;

// 32 outputs from `output` on and columns [begin, end) of a task.
struct ByteBlock {
  int64_t output, rows, begin, end;

  int64_t chunks() const { return (end - begin + kByteChunk - 1) / kByteChunk; }
};

// What a block reads, asked for in parts.
struct BlockAhead {
  LinesAhead weights, scales;
  const LinearTask* task = nullptr;           // null: there is none
  ByteBlock block = {};                       // of it, the next one
  int64_t weight_lines = 0, scale_lines = 0;  // of a part
  int64_t chunks = 0;  // of 128 columns that are worked on while they are asked for

  void SetParts(int64_t parts) {
    weight_lines = weights.lines() / parts + 1;
    scale_lines = scales.lines() / parts + 1;
  }
  void Ask() {
    weights.Ask(weight_lines);
    scales.Ask(scale_lines);
  }
};

constexpr int64_t ValuesOf(Element w_type) { return w_type == Element::kU4 ? 2 : 1; }  // of a byte

inline const char* WeightAt(const LinearTask& t, int64_t output, int64_t k) {
  return static_cast<const char*>(t.w) + output * t.w_stride + k / ValuesOf(t.w_type);
}

// `bytes` of each of `rows` rows. Short ones that lie side by side are asked for page by page.
inline LinesAhead LinesOf(const char* first, int64_t stride, int64_t bytes, int64_t rows) {
  const int64_t all = rows > 0 ? (rows - 1) * stride + bytes : 0;
  if (stride >= kPage || 2 * bytes < stride) return {first, stride, bytes, rows};
  if (all <= kPage) return {first, all, all, 1};
  const int64_t before = static_cast<int64_t>(reinterpret_cast<uintptr_t>(first) % kPage);
  return {first - before, kPage, kPage, (before + all + kPage - 1) / kPage};
}

inline LinesAhead WeightsOf(const LinearTask& t, const ByteBlock& block) {
  const char* const first = WeightAt(t, block.output, block.begin);
  return LinesOf(first, t.w_stride, WeightAt(t, block.output, block.end) - first, block.rows);
}

inline LinesAhead ScalesOf(const LinearTask& t, const ByteBlock& block) {
  const ScaleGrid& g = t.grid;
  const int64_t size = g.type == Element::kF32 ? 4 : 2;
  const int64_t row = GridRow(g, block.output);
  const int64_t rows = GridRow(g, block.output + block.rows - 1) + 1 - row;
  const int64_t column = GridColumn(g, block.begin);
  const int64_t columns = GridColumn(g, block.end - 1) + 1 - column;
  return LinesOf(static_cast<const char*>(g.scale) + (row * g.stride + column) * size,
                 g.stride * size, columns * size, rows);
}

// The blocks of a task: along K first for few rows of x, whose sums stay near; along the outputs
// first for many, so that x stays near. Memory is asked for a block or, where rows are short, for
// all blocks of some outputs together; with by_rows the kernel asks for weights itself.
struct ByteBlocks {
  int64_t n, k;
  bool along_k, short_rows, by_rows;
  int64_t columns;

  int64_t across() const { return (k + columns - 1) / columns; }
  int64_t down() const { return (n + kBytePanelRows - 1) / kBytePanelRows; }
  int64_t count() const { return across() * down(); }
  int64_t together() const { return along_k && short_rows ? across() : 1; }
  ByteBlock At(int64_t i) const {
    const int64_t output = (along_k ? i / across() : i % down()) * kBytePanelRows;
    const int64_t begin = (along_k ? i % across() : i / down()) * columns;
    return {output, Min(kBytePanelRows, n - output), begin, Min(begin + columns, k)};
  }
  // Those that are asked for with block i, their first.
  ByteBlock Together(int64_t i) const {
    ByteBlock out = At(i);
    if (together() > 1) out.end = k;
    return out;
  }
};

inline BlockAhead Asking(const LinearTask& t, const ByteBlock& block, bool by_rows) {
  BlockAhead ahead;
  if (!by_rows) ahead.weights = WeightsOf(t, block);
  ahead.scales = ScalesOf(t, block);
  return ahead;
}

// Begins to ask for what is worked on after block i, which may be the next task's; blocks_of(t) are
// those of another task.
template <class BlocksOf>
inline BlockAhead AheadOf(const LinearTask& task, const ByteBlocks& blocks, int64_t i,
                          const BlocksOf& blocks_of) {
  const LinearTask* t = &task;
  const int64_t next = i + blocks.together();
  ByteBlock block = {};
  if (next < blocks.count())
    block = blocks.Together(next);
  else if ((t = t->next) != nullptr)
    block = blocks_of(*t).Together(0);
  BlockAhead ahead;
  if (t != nullptr) ahead = Asking(*t, block, blocks.by_rows);
  ahead.chunks = blocks.Together(i).chunks();
  return ahead;
}

// multiply(block) for all blocks of a task; `ahead` asks for the ones after.
template <class BlocksOf, class Multiply>
inline void ForEachBlock(const LinearTask& t, const BlocksOf& blocks_of, BlockAhead& ahead,
                         const Multiply& multiply) {
  const ByteBlocks blocks = blocks_of(t);
  ahead = Asking(t, blocks.Together(0), blocks.by_rows);
  ahead.SetParts(1);
  ahead.Ask();
  for (int64_t i = 0; i < blocks.count(); ++i) {
    if (i % blocks.together() == 0) ahead = AheadOf(t, blocks, i, blocks_of);
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
