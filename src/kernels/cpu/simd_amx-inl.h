// The vocabulary of AMX: that of simd_avx512_bf16-inl.h and eight tiles of 16 rows of 64 bytes.
//
//   C[16 rows × 16 columns of f32 or i32] += A[16 × 64 bytes] · B[16 groups × 16 columns × 4 bytes]
//
// A holds rows as they lie in memory; B holds in row g the 2 bf16 or 4 bytes g of every column side
// by side. A thread must configure its tiles before the first use and release them after the last.
#pragma once

#include <cstdint>

#include "src/kernels/cpu/simd_avx512_bf16-inl.h"
#include "src/kernels/cpu/simd_avx512_vnni-inl.h"

namespace latte::cpu {
namespace {

// Rows and bytes per row of each tile, as LDTILECFG reads them. Source: Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 1, chapter 18.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Configures the calling thread's tiles for as long as it lives.
class TileScope {
 public:
  explicit TileScope(const TileShapes& shapes) { _tile_loadconfig(&shapes); }
  ~TileScope() { _tile_release(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

constexpr int64_t kTileBytes = 1024;
constexpr int64_t kTileMacsBf16 = 16 * 16 * 32;
constexpr int64_t kTileMacsInt8 = 16 * 16 * 64;

}  // namespace
}  // namespace latte::cpu
