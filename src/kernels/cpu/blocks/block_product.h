// Products with weights in blocks (weight_blocks.h) of the types that kernels do not read in place:
// a task decodes panels of rows of B to f32 in scratch and multiplies these. So a product has the
// bits of the product with the decoded matrix.
//
// Limits    K ≤ kMaxBlockK.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {

// Columns that a row of a panel holds.
inline constexpr int64_t kMaxBlockK = 1 << 17;

struct BlockScratch {
  static constexpr int64_t kPanel = kMaxBlockK;  // values: 512 KiB

  alignas(64) float panel[kPanel];
};

// Computes a task whose weights are blocks.
void MultiplyBlocks(const GemmKernel& kernel, const GemmTask& task, BlockScratch& scratch);

}  // namespace latte::cpu
