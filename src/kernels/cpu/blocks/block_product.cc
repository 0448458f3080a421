#include "src/kernels/cpu/blocks/block_product.h"

#include <algorithm>

#include "src/base/math.h"
#include "src/kernels/cpu/blocks/decode_blocks.h"

namespace latte::cpu {
namespace {

// Rows of a panel: for M ≤ kSmallPanelM up to 8, which stay in the L1 or L2 until they are
// multiplied. For larger M, whose rows of A pass once per panel, up to the 64 that kernels multiply
// together. Kernels multiply 4 rows at once.
constexpr int64_t kRowsAtOnce = 4;
constexpr int64_t kSmallPanel = 8;
constexpr int64_t kLargePanel = 64;
constexpr int64_t kSmallPanelM = 8;

// An odd number of cache lines from row to row, so that rows do not share the sets of a cache.
int64_t RowStride(int64_t k) {
  return std::min((CeilDiv(k, int64_t{16}) | 1) * 16, BlockScratch::kPanel);
}

int64_t PanelRows(const GemmTask& t, int64_t stride) {
  const int64_t most = t.m <= kSmallPanelM ? kSmallPanel : kLargePanel;
  const int64_t fit = std::min(BlockScratch::kPanel / stride, most);
  return fit < kRowsAtOnce ? fit : fit / kRowsAtOnce * kRowsAtOnce;
}

}  // namespace

void MultiplyBlocks(const GemmKernel& kernel, const GemmTask& task, BlockScratch& scratch) {
  const DTypeInfo& info = InfoOf(task.w_type);
  const DecodeBlocks decode = DecoderOf(task.w_type);
  const auto* const w = static_cast<const std::byte*>(task.w);
  const int64_t stride = RowStride(task.k);
  const int64_t most = PanelRows(task, stride);
  for (int64_t n = 0; n < task.n; n += most) {
    GemmTask decoded = task;
    decoded.w = scratch.panel;
    decoded.w_type = Element::kF32;
    decoded.w_stride = stride;
    if (task.bias != nullptr) decoded.bias = task.bias + n;
    decoded.y = task.y + n;
    decoded.n = std::min(most, task.n - n);
    decoded.next = nullptr;
    for (int64_t i = 0; i < decoded.n; ++i)
      decode(w + (n + i) * task.w_stride * info.bytes, task.k / info.values,
             scratch.panel + i * stride);
    kernel.gemm(decoded);
  }
}

}  // namespace latte::cpu
