#include "src/kernels/cpu/blocks/block_product.h"

#include <algorithm>

#include "src/base/math.h"
#include "src/kernels/cpu/blocks/unpack_blocks.h"

namespace latte::cpu {
namespace {

// Rows of a panel: up to 8 for M ≤ 8, which stay in the L1 or L2 until they are multiplied. For larger M,
// whose rows of A pass once per panel, up to the 64 that kernels multiply together.
constexpr int64_t kLeastPanel = 4;
constexpr int64_t kSmallPanel = 8;
constexpr int64_t kLargePanel = 64;
constexpr int64_t kSmallPanelM = 8;

template <class T, auto kConvert>
void SumRow(const std::byte* x, int64_t k, float* of_16) {
  for (int64_t g = 0; g < k / 16; ++g) {
    float sums[4];
    for (int64_t i = 0; i < 4; ++i) sums[i] = LoadAs<T, kConvert>(x, 16 * g + i);
    for (int64_t j = 4; j < 16; j += 4)
      for (int64_t i = 0; i < 4; ++i) sums[i] += LoadAs<T, kConvert>(x, 16 * g + j + i);
    of_16[g] = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  }
}

// Rows of B as int8 weights with a scale per group of columns.
struct UnpackedPanel {
  int8_t* codes;
  float *scales, *offsets;
  int64_t rows, stride, groups;  // most rows; bytes from row to row of codes; groups of a row
};

// An odd number of cache lines from row to row, so that rows do not share the sets of a cache.
int64_t CodeStride(int64_t k) { return (CeilDiv(k, 64) | 1) * 64; }

UnpackedPanel PanelFor(const GemmTask& t, const BlockUnpacker& unpacker, BlockScratch& scratch) {
  UnpackedPanel out = {};
  out.stride = CodeStride(t.k);
  out.groups = t.k / unpacker.group;
  const int64_t floats = (unpacker.has_offsets ? 2 : 1) * out.groups;
  const int64_t row_bytes = out.stride + floats * static_cast<int64_t>(sizeof(float));
  const int64_t fit =
      std::min(BlockScratch::kPanelBytes / row_bytes, BlockScratch::kProducts / t.m);
  const int64_t rows = std::min(fit, t.m <= kSmallPanelM ? kSmallPanel : kLargePanel);
  out.rows = rows < kLeastPanel ? rows : rows / kLeastPanel * kLeastPanel;
  out.codes = reinterpret_cast<int8_t*>(scratch.panel);
  out.scales = reinterpret_cast<float*>(scratch.panel + out.rows * out.stride);
  out.offsets = out.scales + out.rows * out.groups;
  return out;
}

void UnpackRows(const GemmTask& t, const BlockUnpacker& unpacker, int64_t n, int64_t rows,
                const UnpackedPanel& panel) {
  const DTypeInfo& info = InfoOf(t.w_type);
  const auto* const w = static_cast<const std::byte*>(t.w);
  for (int64_t i = 0; i < rows; ++i)
    unpacker.unpack(w + (n + i) * t.w_stride * info.bytes, t.k / info.values,
                    panel.codes + i * panel.stride, panel.scales + i * panel.groups,
                    panel.offsets + i * panel.groups);
}

// The product of A with the codes of rows [n, n + rows) of B.
GemmTask CodesTask(const GemmTask& t, const BlockUnpacker& unpacker, int64_t n, int64_t rows,
                   const UnpackedPanel& panel) {
  GemmTask out = t;
  out.w = panel.codes;
  out.w_type = Element::kI8;
  out.w_stride = panel.stride;
  out.grid = {.scale = panel.scales,
              .type = Element::kF32,
              .stride = panel.groups,
              .rows = 1,
              .columns = unpacker.group};
  if (t.bias != nullptr) out.bias = t.bias + n;
  out.y = t.y + n;
  out.n = rows;
  out.packed = nullptr;
  out.next = nullptr;
  return out;
}

// Adds the product of the sums of A with the offsets.
void AddOffsets(const GemmKernel& kernel, const GemmTask& codes, const float* sums, int64_t group,
                const UnpackedPanel& panel, float* products) {
  GemmTask t = codes;
  t.x = group == 16 ? sums : sums + codes.k / 16;
  t.x_type = Element::kF32;
  t.x_stride = GroupSums(codes.k);
  t.w = panel.offsets;
  t.w_type = Element::kF32;
  t.w_stride = panel.groups;
  t.grid = {};
  t.bias = nullptr;
  t.y = products;
  t.y_stride = codes.n;
  t.k = panel.groups;
  kernel.gemm(t);
  for (int64_t m = 0; m < t.m; ++m)
    for (int64_t n = 0; n < t.n; ++n) codes.y[m * codes.y_stride + n] += products[m * t.n + n];
}

}  // namespace

bool NeedsGroupSums(DType w) { return IsBlocks(w) && UnpackerOf(w).has_offsets; }

void SumGroups(const GemmTask& t, float* sums) {
  for (int64_t m = 0; m < t.m; ++m, sums += GroupSums(t.k)) {
    const std::byte* const x =
        static_cast<const std::byte*>(t.x) + m * t.x_stride * SizeOf(t.x_type);
    if (t.x_type == Element::kF32)
      SumRow<float, Unchanged>(x, t.k, sums);
    else if (t.x_type == Element::kBF16)
      SumRow<uint16_t, BF16ToFloat>(x, t.k, sums);
    else
      SumRow<uint16_t, F16ToFloat>(x, t.k, sums);
    float* const of_32 = sums + t.k / 16;
    for (int64_t g = 0; g < t.k / 32; ++g) of_32[g] = sums[2 * g] + sums[2 * g + 1];
  }
}

void MultiplyBlocks(const GemmKernel& kernel, const GemmTask& task, BlockScratch& scratch) {
  const BlockUnpacker& unpacker = UnpackerOf(task.w_type);
  const UnpackedPanel panel = PanelFor(task, unpacker, scratch);
  for (int64_t n = 0; n < task.n; n += panel.rows) {
    const int64_t rows = std::min(panel.rows, task.n - n);
    UnpackRows(task, unpacker, n, rows, panel);
    const GemmTask codes = CodesTask(task, unpacker, n, rows, panel);
    kernel.gemm(codes);
    if (unpacker.has_offsets)
      AddOffsets(kernel, codes, static_cast<const float*>(task.packed), unpacker.group, panel,
                 scratch.products);
  }
}

}  // namespace latte::cpu
