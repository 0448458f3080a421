// What one instruction set offers: sequential pieces of work on raw pointers.
//
// Only targets/<isa>.cc is compiled with that instruction set, and an inline function of a shared
// header, compiled there, could be the copy that the linker keeps for every processor. So nothing
// but this header and the -inl.h files (all of internal linkage) is included there, and this header
// has no functions: threads, spans and views stay in launch_*.cc. tools/check_isa_symbols.sh checks
// the objects.
#pragma once

#include <cstddef>
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

inline constexpr int64_t kMaxRows = 32;           // rows of mha that share a block of keys
inline constexpr int64_t kMaxQueries = 192;       // queries per task: mha, f32
inline constexpr int64_t kMaxBf16Queries = 512;   // mha, bf16
inline constexpr int64_t kMaxAmxQueries = 512;    // mha, AMX
inline constexpr int64_t kMaxDecodeWidth = 1152;  // C + R of mla_decode
inline constexpr int64_t kMaxHeadWidth = 512;     // N + R, and V, of mha

// How a cached row [latent of c | rope part of r] is stored; tensor/cache_format.h.
enum class CacheFormat : uint8_t { kPlain, kF8, kF8Dense, kI8, kQ6 };
struct CachedRowLayout {
  CacheFormat kind;
  Element element;  // kPlain: type of the numbers
  int64_t c, r;
  int64_t bytes, rope_at, scales_at;  // row size; offsets in the row, unless kPlain
  float descale;                      // kF8Dense
};

// Rows of mla_decode, (token, head) pairs of one sequence, per task.
inline constexpr int64_t kMaxDecodeRows = 64;
inline constexpr int64_t kMaxLargeDecodeRows = 128;  // the same of int8 and AMX kernels
inline constexpr int64_t kMaxS8Rope = 512;  // R of int8 caches that the int8 kernels accept

// Result of attention to one split of keys, not normalised:
//   max = max_j s_j      sum = Σ_j e^{s_j−max}      o = Σ_j e^{s_j−max}·v_j
// If a row sees no key of the split, max is −inf and sum and o are zero.
struct SplitResult {
  float* o;    // [rows, c], contiguous
  float* max;  // [rows]
  float* sum;  // [rows]
};

// One row: the query of one head of one new token.
struct DecodeQuery {
  const float* q_latent;  // [c]
  const float* q_rope;    // [r]
  int64_t visible;        // the row sees keys [0, visible) of its sequence
};

// Where the results of a task's splits go. The kernel calls next(self) before each split, in order,
// after it has written all splits before.
struct SplitOutputs {
  void* self;
  SplitResult (*next)(void* self);
};

// Absorbed attention of up to Target::decode_rows rows to keys [key_begin, key_end) of their
// sequence, divided into `splits` splits, each computed from zero. The last splits may have fewer
// keys or none.
struct DecodeTask {
  const DecodeQuery* q;  // [rows]
  const void* pages;     // [pages, page_tokens] cached rows, contiguous
  CachedRowLayout cache;
  int64_t page_tokens;
  const int32_t* page_table;  // ⌈key_end / page_tokens⌉
  int64_t rows, c, r;
  int64_t key_begin, key_end;  // key_begin is a multiple of 128
  int64_t splits, split_keys;  // a multiple of 128
  float scale;
  CacheLevel prefetch_level;
  bool many_dram_streams;  // as Machine has it
  SplitOutputs outputs;
  void* scratch;  // kScratchBytes
};

// Cached rows of a sequence, converted to f32.
struct GatherTask {
  const void* pages;
  CachedRowLayout cache;
  int64_t page_tokens;
  const int32_t* page_table;
  int64_t begin, count;  // keys
  float* y;              // [count, c + r], written
};

// Expanded attention of up to Target::mha_queries consecutive queries of one head.
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

// Rotates x, 2·count numbers, in place by `count` angles: pairs of neighbours if interleaved, else
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
// As WeightScale and BucketGrid of params/sampling.h, which has functions and may not be included
// here.
struct LogitWeights {
  float max, scale, cut;
};
struct LogitBuckets {
  float max, per_logit;
};
inline constexpr size_t kLogitBlock = 64;
inline constexpr int32_t kLogitBuckets = 2048;

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
  // Merges `count` results of later splits, in order, into `to`: [rows, c] each, each `stride`
  // floats behind the one before it.
  void (*merge_splits)(const SplitResult& to, const SplitResult& from, int64_t stride,
                       int64_t count, int64_t rows, int64_t c) = nullptr;
  // o /= sum, and lse (may be null) from max and sum. A row that saw no key stays zero.
  void (*normalize_split)(const SplitResult&, int64_t rows, int64_t c, float* lse) = nullptr;
  void (*mha)(const MhaTask&) = nullptr;
  int64_t mha_queries = kMaxQueries;  // the most that mha takes
  void (*rms_norm)(const RmsNormTask&) = nullptr;
  void (*silu_mul)(const SiluMulTask&) = nullptr;
  // The following functions give the bytes of the reference.
  void (*rope)(const RopeTask&) = nullptr;
  void (*combine)(const CombineTask&) = nullptr;
  void (*mix)(const MixTask&) = nullptr;
  void (*add)(const float* x, int64_t count, float* y) = nullptr;            // y += x
  void (*round)(const float* x, int64_t count, Element, void* y) = nullptr;  // bf16 or f16
  void (*widen)(const void* x, Element, int64_t count, float* y) = nullptr;  // f32 or 16 bits
  void (*quantize_row)(const QuantizeTask&) = nullptr;
  // Ops of params/sampling.h over whole blocks of logits.
  bool (*logit_max)(const float* z, size_t blocks, float* block_max) = nullptr;
  uint64_t (*weight_sum)(const float* z, const float* block_max, size_t blocks,
                         const LogitWeights&) = nullptr;
  void (*weights)(const float* z, size_t blocks, const LogitWeights&, uint64_t* out) = nullptr;
  void (*weight_histogram)(const float* z, const float* block_max, size_t blocks,
                           const LogitWeights&, const LogitBuckets&, uint64_t* buckets) = nullptr;
  void (*find_bucket)(const float* z, size_t blocks, const LogitBuckets&, int32_t bucket,
                      uint8_t* found) = nullptr;
  // Runs chains of f32 multiply-adds or bf16 dot products in registers; their sum goes to `sink`.
  // Returns the number of FLOPs.
  int64_t (*peak)(int64_t rounds, float* sink) = nullptr;
  int64_t (*s8_peak)(int64_t rounds, float* sink) = nullptr;  // the same for dot products of bytes
};

extern const Target kAvx2;
extern const Target kAvx2Bytes;  // for activations of int8
extern const Target kAvx512;
extern const Target kAvx512Vnni;
extern const Target kAvx512Bf16;
extern const Target kAvx512SmallH;  // for small H over e4m3 caches
extern const Target kAmx;
extern const Target kAmxInt8;  // for activations and caches of int8

}  // namespace latte::cpu
