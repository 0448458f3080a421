// What one instruction set offers: sequential pieces of work on raw pointers.
//
// Only targets/<isa>.cc is compiled with that instruction set, and an inline function of a shared
// header, compiled there, could be the copy that the linker keeps for every processor. So nothing
// but this header and the -inl.h files (all of internal linkage) is included there, and this header
// has no functions: threads, spans and views stay in launch_*.cc. tools/check_isa_symbols.sh checks
// the objects.
#pragma once

#include <cstdint>

namespace latte::cpu {

enum class Element : uint8_t { kF32, kF16, kBF16, kF8, kF8Fnuz, kI8, kU4 };

// Where lines of memory go that are asked for before they are used.
enum class CacheLevel : uint8_t { kL1, kL2 };

// What a task may use besides registers and some tens of KiB of stack: `scratch` of a task, of the
// thread that runs it, aligned to kScratchAlignment. Anything may be in it.
inline constexpr int64_t kScratchBytes = 9 << 18;  // 2.25 MiB
inline constexpr int64_t kScratchAlignment = 64;

// Strides count elements; the last dimension is contiguous everywhere.

// Scales and zeros of a weight, as BlockScale of params/gemm.h; row_begin is the place of the
// task's first row.
struct ScaleGrid {
  const void* scale;            // null: the weight is plain
  Element type;                 // kF32, kBF16 or kF16
  const uint8_t* zero;          // null: 8 for kU4, else 0
  int64_t stride, zero_stride;  // from one row of blocks to the next
  int64_t rows, columns, row_begin, column_begin;
};

// y = W·x (+ bias).
struct GemmTask {
  const void* x;  // [m, k] f32, 16 bits or i8
  const void* w;  // [n, k], any alignment
  Element x_type, w_type;
  int64_t x_stride, w_stride, y_stride;  // w_stride of kU4 in bytes
  ScaleGrid grid;
  const float* x_scale;  // [m, ⌈k/x_group⌉] of an i8 x
  int64_t x_scale_stride, x_group;
  const float* bias;   // [n]; may be null
  float* y;            // [m, n], written
  int64_t m, n, k;     // k > 0
  const void* packed;  // x as PackTask leaves it, 16 rows after 16; only for targets with `pack`
  // Whose weights the thread will probably read next, so that memory can be asked for them; null:
  // none. Only w, w_type, w_stride, grid, n and k of it count.
  const GemmTask* next;
  CacheLevel prefetch_level;
  bool many_dram_streams;  // as Machine has it
  void* scratch;           // kScratchBytes
};

// Activations in the order in which a target multiplies them: up to 16 rows.
struct PackTask {
  const void* x;  // [rows, k] bf16 or i8
  int64_t x_stride, rows, k;
  // Written. Of bf16 [⌈k/32⌉, 16, 16, 2]: step, pair of columns, row, column of the pair; beside
  // e4m3 weights columns are in the order of amx_fp8-inl.h. Of i8 amx_int8-inl.h says it, and
  // gemm_s8_bcast_vnni-inl.h without tiles.
  void* packed;
  const float* x_scale;  // as in GemmTask
  int64_t x_scale_stride, x_group;
  Element w_type;  // of the weights that they will be multiplied by
};
// Columns that are packed together, and their bytes.
struct PackedBlock {
  int64_t columns, bytes;
};
inline constexpr int64_t kPackedS8Bytes = 16 * 128 + 16 * 4;
inline constexpr int64_t kPackedBf16K = 128;  // of bf16

// Rows of x of 8 bits of a task: reads of W and what becomes of them are spread over them.
inline constexpr int64_t kMaxTaskM = 192;
inline constexpr int64_t kMaxInPlaceM = 12;  // as Target::lane_inputs
inline constexpr int64_t kMaxAmxM = 512;     // on tiles
inline constexpr int64_t kMaxAmxN = 512;     // and its rows of W

// y = Wᵀ·x, of several products side by side where few rows of x make memory the floor.
struct GemmTTask {
  const void* x;  // [m, n] f32 or 16 bits
  const void* w;  // [n, k], any alignment
  Element x_type, w_type;
  int64_t x_stride, w_stride, y_stride;  // w_stride of kU4 in bytes
  ScaleGrid grid;                        // column_begin is the place of the task's first column
  float* y;                              // [m, k], written
  int64_t m, n, k;                       // n > 0
  int64_t batches;                       // products; more than 1 only of up to kMaxSmallM rows
  int64_t x_batch, w_batch, y_batch;     // from one to the next: elements of x, bytes of W, floats
  int64_t grid_batch;                    // and rows of the grid
  // W of the product that the thread will probably read next, of the same shape, and the place of
  // its first row in the grid; null: none.
  const void* next_w;
  int64_t next_row_begin;
  CacheLevel prefetch_level;
  void* scratch;  // kScratchBytes
};
inline constexpr int64_t kMaxBatchInFlight = 8;  // products of a task
inline constexpr int64_t kMaxSmallM = 4;

inline constexpr int64_t kMaxRows = 32;      // rows of attention that share a pass over the keys
inline constexpr int64_t kMaxQueries = 192;  // of an expanded task
inline constexpr int64_t kMaxPairQueries = 512;   // of one on pairs of bf16
inline constexpr int64_t kMaxTileQueries = 512;   // the same where tiles multiply
inline constexpr int64_t kMaxDecodeWidth = 1152;  // C + R
inline constexpr int64_t kMaxHeadWidth = 512;     // N + R, and V

// How a cached row [latent of c | rope part of r] lies in memory; tensor/row_format.h.
enum class RowKind : uint8_t { kPlain, kF8, kF8Dense, kI8, kQ6 };
struct CachedRows {
  RowKind kind;
  Element element;  // kPlain: of numbers
  int64_t c, r;
  int64_t bytes, rope_at, scales_at;  // of a row, and from its start; kPlain: bytes alone
  float descale;                      // kF8Dense
};

// Rows of absorbed attention, (token, head) pairs of one sequence, that share a pass over the keys.
inline constexpr int64_t kMaxDecodeRows = 64;
inline constexpr int64_t kMaxTileRows = 128;  // the same where tiles multiply
inline constexpr int64_t kMaxByteRope = 512;  // R of int8 caches that are multiplied as bytes

// Attention of some rows to a run of keys, not normalised:
//   max = max_j s_j      sum = Σ_j e^{s_j−max}      o = Σ_j e^{s_j−max}·v_j
// max is −inf, sum and o are zero where a row sees none of the keys.
struct Partial {
  float* o;    // [rows, c], contiguous
  float* max;  // [rows]
  float* sum;  // [rows]
};

// One row: a head of a new token.
struct DecodeRow {
  const float* q_latent;  // [c]
  const float* q_rope;    // [r]
  int64_t visible;        // it sees keys [0, visible) of its sequence
};

// Where results of a task's splits go: next(self) is called before each of them, in order, when all
// before it are written.
struct DecodeOuts {
  void* self;
  Partial (*next)(void* self);
};

// Absorbed attention of up to Target::decode_rows rows to keys [key_begin, key_end) of their
// sequence, in `splits` splits each of which begins from nothing; the last ones may have fewer keys
// or none.
struct DecodeTask {
  const DecodeRow* q;  // [rows]
  const void* pages;   // [pages, page_tokens] cached rows, contiguous
  CachedRows cache;
  int64_t page_tokens;
  const int32_t* page_table;  // ⌈key_end / page_tokens⌉
  int64_t rows, c, r;
  int64_t key_begin, key_end;  // key_begin is a multiple of 128
  int64_t splits, split_keys;  // a multiple of 128
  float scale;
  CacheLevel prefetch_level;
  bool many_dram_streams;  // as Machine has it
  DecodeOuts outs;
  void* scratch;  // kScratchBytes
};

// Cached rows of a sequence, widened to f32.
struct GatherTask {
  const void* pages;
  CachedRows cache;
  int64_t page_tokens;
  const int32_t* page_table;
  int64_t begin, count;  // keys
  float* y;              // [count, c + r], written
};

// Expanded attention of up to Target::mha_queries neighbouring queries of one head.
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
  void* scratch;  // kScratchBytes
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

// x = 2·count numbers rotated in place by `count` angles: pairs of neighbours if interleaved, else
// number j with number count + j.
struct RopeTask {
  float* x;
  const float* cos;  // [count]
  const float* sin;
  int64_t count;
  bool interleaved;
};

// y += Σ_k weights[k] · x[rows[k],:], one row; the sum in the order of k.
struct CombineTask {
  const float* x;
  int64_t x_stride;
  const int32_t* rows;
  const float* weights;
  int64_t chosen, d;
  float* y;
};

// o = a·o + b·o_b in f64, rounded once.
struct MixTask {
  float* o;
  const float* o_b;
  int64_t count;
  double a, b;
};

// Activations of one row as 8 bits; params/gemm.h.
struct QuantizeTask {
  const float* x;  // [k]
  int8_t* y;       // [k], written
  float* scale;    // [⌈k/group⌉], written
  int64_t k, group;
};

// What a target lacks is null.
struct Target {
  void (*gemm)(const GemmTask&) = nullptr;
  void (*gemm_t)(const GemmTTask&) = nullptr;
  int64_t batch_in_flight = kMaxBatchInFlight;  // the most that gemm_t takes side by side
  bool amx_tiles = false;
  // If there, linear takes packed activations where `packs`, or, with tiles, where m > 1.
  void (*pack_a)(const PackTask&) = nullptr;
  bool (*packs_a)(Element w, int64_t m) = nullptr;
  PackedBlock packed_a_block = {kPackedBf16K, 16 * kPackedBf16K * 2};
  // Rows of x of 8 bits up to which rows of W are multiplied where they lie, not laid out in
  // panels.
  int64_t max_in_place_m = kMaxInPlaceM;
  // What columns of a task should be a multiple of beside some rows of x, of the type of W; 0: of
  // nothing special.
  int64_t n_multiple = 0;
  void (*mla_decode)(const DecodeTask&) = nullptr;
  int64_t decode_rows = kMaxDecodeRows;  // the most that mla_decode takes
  void (*gather_pages)(const GatherTask&) = nullptr;
  // Adds `count` results of later keys, in order, to that of earlier ones: [rows, c] each, and each
  // `stride` floats behind the one before it.
  void (*merge_partials)(const Partial& to, const Partial& from, int64_t stride, int64_t count,
                         int64_t rows, int64_t c) = nullptr;
  // o /= sum, and lse (may be null) from max and sum. A row that saw nothing stays zero.
  void (*finish_partial)(const Partial&, int64_t rows, int64_t c, float* lse) = nullptr;
  void (*mha)(const MhaTask&) = nullptr;
  int64_t mha_queries = kMaxQueries;  // the most that mha takes
  void (*rms_norm)(const RmsNormTask&) = nullptr;
  void (*silu_mul)(const SiluMulTask&) = nullptr;
  // What follows gives the bytes of the reference.
  void (*rope)(const RopeTask&) = nullptr;
  void (*combine)(const CombineTask&) = nullptr;
  void (*mix)(const MixTask&) = nullptr;
  void (*add)(const float* x, int64_t count, float* y) = nullptr;            // y += x
  void (*round)(const float* x, int64_t count, Element, void* y) = nullptr;  // bf16 or f16
  void (*widen)(const void* x, Element, int64_t count, float* y) = nullptr;  // f32 or 16 bits
  void (*quantize_row)(const QuantizeTask&) = nullptr;
  // Chains of multiply-adds that need nothing but registers; their sum goes to `sink`. Returns the
  // FLOPs done.
  int64_t (*peak)(int64_t rounds, float* sink) = nullptr;
  int64_t (*byte_peak)(int64_t rounds, float* sink) = nullptr;  // likewise of bytes
};

extern const Target kAvx2;
extern const Target kAvx2Bytes;  // for activations of int8
extern const Target kAvx512;
extern const Target kAvx512Vnni;
extern const Target kAvx512Bf16;
extern const Target kAvx512Few;  // for few heads over caches of e4m3
extern const Target kAmx;
extern const Target kAmxInt8;  // for activations and caches of int8

}  // namespace latte::cpu
