// Divides a matrix product C = A·Bᵀ into tasks: blocks of C, `rows` rows × `columns` columns.
// The choice affects only speed; no sum along K is ever divided.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/base/math.h"
#include "src/kernels/cpu/target.h"
#include "src/kernels/op.h"
#include "src/kernels/params/gemm.h"

namespace latte::cpu {

// Up to this M the product is bound by memory: B is read once, at the rate of memory.
inline constexpr int64_t kMemoryBoundM = 64;
// The widest tile of columns of gemm_t.
inline constexpr int64_t kTileColumns = 128;

// The grid of blocks over C [m, n] of each batch.
struct BlockGrid {
  int64_t m = 0, n = 0, rows = 1, columns = 1;
  int64_t macs = 0;  // multiply-adds per element of C

  int64_t across() const { return CeilDiv(n, columns); }
  int64_t down() const { return CeilDiv(m, rows); }
  int64_t per_batch() const { return across() * down(); }
};

// One block: rows [m, m + rows) and columns [n, n + columns) of batch b.
struct Block {
  int64_t b, m, rows, n, columns;
};

// Block number `task`. Blocks that read the same rows of B are consecutive, so that they find them
// in the cache.
inline Block BlockAt(const BlockGrid& grid, int64_t task) {
  const int64_t n = task % grid.per_batch() / grid.down() * grid.columns;
  const int64_t m = task % grid.down() * grid.rows;
  return {task / grid.per_batch(), m, std::min(grid.rows, grid.m - m), n,
          std::min(grid.columns, grid.n - n)};
}

struct BlockingRules {
  int64_t step;                // columns of a block are a multiple of it
  int64_t products = 1;        // products of about this size that share the threads
  bool int8 = false;           // A is int8
  bool packs_in_task = false;  // each task packs its rows of int8 A
  int64_t n_multiple = 0;      // as GemmKernel::n_multiple
  int64_t max_rows = kMaxTaskM;
};

// `macs`: multiply-adds per element of C.
BlockGrid ChooseBlocks(int64_t m, int64_t n, int64_t macs, const BlockingRules& rules,
                       const Exec& exec);

// For AMX targets, whose tiles are 16×16. `products`: number of products in the call.
BlockGrid ChooseBlocksForTiles(const GemmProblem& p, int64_t products, const Exec& exec);

}  // namespace latte::cpu
