// Products with weights in blocks (weight_blocks.h) by kernels that multiply int8 weights with scales. A
// task unpacks panels of rows of B into scratch. With the groups g of a row,
//
//   C = Σ_g scale(g) · Σ_{k in g} A·code  +  Σ_g offset(g) · Σ_{k in g} A
//
// and each part is one product of the kernel: A with the codes, and the sums of A over groups with the
// offsets. Types without offsets have the first part alone.
//
// Order     The order of the kernel for K and groups of columns, the bias; then that of the kernel for
//           K / group columns. A sum of A over 16 columns adds columns i, i + 4, i + 8 and i + 12, then
//           these four; one over 32 columns adds two of them.
// Limits    K ≤ kMaxBlockK.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {

// Columns that a row of a panel holds.
inline constexpr int64_t kMaxBlockK = 1 << 18;

struct BlockScratch {
  static constexpr int64_t kProducts = 1 << 14;
  static constexpr int64_t kMaxRows = kProducts / 32;  // rows of A of a task
  static constexpr int64_t kPanelBytes = 448 << 10;

  alignas(64) float products[kProducts];     // of offsets, [rows of A, rows of the panel]
  alignas(64) std::byte panel[kPanelBytes];  // codes, scales and offsets
};

// The sums of a row of A over groups of 16 columns, then those over groups of 32.
inline constexpr int64_t GroupSums(int64_t k) { return k / 16 + k / 32; }

// Whether products with weights of the type need the sums of A.
bool NeedsGroupSums(DType w);

// Writes them for the rows of a task: sums [m, GroupSums(k)].
void SumGroups(const GemmTask& task, float* sums);

// Computes a task whose weights are blocks. `packed` has the sums of its rows, if it needs them.
void MultiplyBlocks(const GemmKernel& kernel, const GemmTask& task, BlockScratch& scratch);

}  // namespace latte::cpu
