// What one instruction set offers: sequential pieces of work on raw pointers.
//
// Only target_<isa>.cc is compiled with that instruction set, and an inline function of a shared
// header, compiled there, could be the copy that the linker keeps for every processor. So nothing
// but this header and the -inl.h files (all of internal linkage) is included there, and this header
// has no functions: threads, spans and views stay in launch_*.cc. tools/check_isa_symbols.sh checks
// the objects.
#pragma once

#include <cstdint>

namespace latte::cpu {

enum class Element : uint8_t { kF32, kF16, kBF16, kF8, kF8Fnuz, kI8, kU4 };

// Strides count elements; the last dimension is contiguous everywhere.

// Scales and zeros of a weight, as BlockScale of params/linear.h; row_begin is the place of the
// task's first row.
struct ScaleGrid {
  const void* scale;            // null: the weight is plain
  Element type;                 // kF32, kBF16 or kF16
  const uint8_t* zero;          // null: 8 for kU4, else 0
  int64_t stride, zero_stride;  // from one row of blocks to the next
  int64_t rows, columns, row_begin, column_begin;
};

// y = W·x (+ bias).
struct LinearTask {
  const void* x;  // [m, k] f32, 16 bits or i8
  const void* w;  // [n, k], any alignment
  Element x_type, w_type;
  int64_t x_stride, w_stride, y_stride;  // w_stride of kU4 in bytes
  ScaleGrid grid;
  const float* x_scale;  // [m, ⌈k/x_group⌉] of an i8 x
  int64_t x_scale_stride, x_group;
  const float* bias;  // [n]; may be null
  float* y;           // [m, n], written
  int64_t m, n, k;    // k > 0
};

// y = Wᵀ·x.
struct LinearTTask {
  const void* x;  // [m, n] f32 or 16 bits
  const void* w;  // [n, k], any alignment
  Element x_type, w_type;
  int64_t x_stride, w_stride, y_stride;  // w_stride of kU4 in bytes
  ScaleGrid grid;                        // column_begin is the place of the task's first column
  float* y;                              // [m, k], written
  int64_t m, n, k;                       // n > 0
};

inline constexpr int64_t kMaxRows = 32;  // rows of attention that share a pass over the keys
inline constexpr int64_t kMaxDecodeWidth = 1152;  // C + R
inline constexpr int64_t kMaxHeadWidth = 512;     // N + R, and V

// Absorbed attention of up to kMaxRows heads of one token to the first `keys` rows of its sequence.
struct DecodeTask {
  const float* q_latent;  // [rows, c]
  const float* q_rope;    // [rows, r]
  int64_t q_latent_stride, q_rope_stride;
  const void* pages;  // [pages, page_tokens, c + r] f32 or bf16, contiguous
  Element cache;
  int64_t page_tokens;
  const int32_t* page_table;  // ⌈keys / page_tokens⌉
  int64_t rows, keys, c, r;
  float scale;
  float* o;    // [rows, c], written, contiguous
  float* lse;  // [rows], written; may be null
};

// Expanded attention of up to kMaxRows neighbouring queries of one head.
struct MhaTask {
  const float* q_nope;  // [rows, n]
  const float* q_rope;  // [rows, r]
  const float* k_nope;  // [keys, n]
  const float* k_rope;  // [keys, r]
  const float* v;       // [keys, v_width]
  int64_t q_nope_stride, q_rope_stride, k_nope_stride, k_rope_stride, v_stride;
  int64_t rows, keys, n, r, v_width;
  int64_t q_begin, key_begin;  // absolute positions of row 0 and key 0
  float scale;
  float* o;    // [rows, v_width], written
  float* lse;  // [rows], written
  int64_t o_stride, lse_stride;
};

// y = x · rsqrt(mean(x²) + eps) · w, one row; x and y may be the same.
struct RmsNormTask {
  const float* x;
  const void* w;
  Element w_type;
  float* y;
  int64_t d;
  float eps;
};

// y = silu(gate) ⊙ up; y may be gate.
struct SiluMulTask {
  const float* gate;
  const float* up;
  float* y;
  int64_t count;
};

// What a target lacks is null.
struct Target {
  void (*linear)(const LinearTask&) = nullptr;
  void (*linear_t)(const LinearTTask&) = nullptr;
  void (*mla_decode)(const DecodeTask&) = nullptr;
  void (*mha)(const MhaTask&) = nullptr;
  void (*rms_norm)(const RmsNormTask&) = nullptr;
  void (*silu_mul)(const SiluMulTask&) = nullptr;
  // Chains of multiply-adds that need nothing but registers; their sum goes to `sink`. Returns the
  // FLOPs done.
  int64_t (*peak)(int64_t rounds, float* sink) = nullptr;
  int64_t (*byte_peak)(int64_t rounds, float* sink) = nullptr;  // likewise of bytes
};

extern const Target kAvx2;
extern const Target kAvx512;
extern const Target kAvx512Vnni;
extern const Target kAvx512Bf16;
extern const Target kAmx;

}  // namespace latte::cpu
