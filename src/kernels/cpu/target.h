// The interface between launch files and kernels: tasks on raw pointers, each run by one thread,
// and the functions that run them.
//
// Only targets/<isa>.cc is compiled with an instruction set. The linker keeps one copy of an inline
// function; if it kept a copy that was compiled there, processors without the instruction set would
// crash. Therefore targets/<isa>.cc includes only this header, targets.h and -inl.h files, which
// have internal linkage. They use types and constants of target.h, targets.h and tensor/dtype.h,
// and call none of the functions there. tools/check_isa_symbols.sh checks the objects.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/tensor/cache_format_enum.h"
#include "src/tensor/dtype.h"

namespace latte::cpu {

using Element = DType;

// The cache level that software prefetch fills.
enum class CacheLevel : uint8_t { kL1, kL2 };

// The properties in which micro-architectures of one instruction set differ; tuning.h has them.
struct Tuning {
  CacheLevel prefetch_level = CacheLevel::kL1;  // of sequential prefetch
  bool many_dram_streams =
      false;  // a core reads memory faster through many streams than through one
};

// The scratch memory of a task. It belongs to the thread, is aligned to kScratchAlignment and is
// not initialised.
inline constexpr int64_t kScratchBytes = 9 << 18;  // 2.25 MiB
inline constexpr int64_t kScratchAlignment = 64;

// Strides count elements; the last dimension is contiguous everywhere.

// Scales and zero points of a weight, as BlockScale of params/gemm.h; row_begin is the position of
// the task's first row.
struct ScaleGrid {
  const void* scale;            // null: the weight is plain
  Element type;                 // kF32, kBF16 or kF16
  const uint8_t* zero;          // null: 8 for kU4, else 0
  int64_t stride, zero_stride;  // from one row of blocks to the next
  int64_t rows, columns, row_begin, column_begin;
};

// The types of blocks that gemm_f32 kernels read in place (blocks/block_weights-inl.h).
inline constexpr Element kBlockOperands[] = {Element::kQ8_0, Element::kQ4_K, Element::kQ5_K,
                                             Element::kQ6_K};

// A block of C = A·Bᵀ (+ bias), with A = x, B = w, C = y.
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
  const void* packed;  // x as PackTask writes it, 16 rows at a time; null if A is not packed
  // The task whose weights the thread will probably read next, for prefetching; null: none. Only w,
  // w_type, w_stride, grid, n and k of it are set.
  const GemmTask* next;
  const Tuning* tuning;
  void* scratch;  // kScratchBytes
};

// Packs up to 16 rows of A in the order that the target's micro-kernels read.
struct PackTask {
  const void* x;  // [rows, k] bf16 or i8
  int64_t x_stride, rows, k;
  // Written. bf16: [⌈k/32⌉, 16, 16, 2] = K step, pair of columns, row, column of the pair; for e4m3
  // weights, columns are in the order of amx_fp8-inl.h. i8: as amx_int8-inl.h defines it for tiles
  // and gemm_s8_bcast_vnni-inl.h for VNNI.
  void* packed;
  const float* x_scale;  // as in GemmTask
  int64_t x_scale_stride, x_group;
  Element w_type;  // type of B
};
// Columns that are packed together, and the bytes that 16 rows of them take.
struct PackedBlock {
  int64_t columns, bytes;
};
inline constexpr int64_t kPackedS8Bytes = 16 * 128 + 16 * 4;
inline constexpr int64_t kPackedBf16K = 128;  // of bf16

// Largest A, in values, of the kernels that keep A in the L1 and read B row by row.
inline constexpr int64_t kMaxResidentA = 12 << 10;
inline constexpr int64_t kMaxTaskM = 192;    // M of a task with int8 A
inline constexpr int64_t kMaxInPlaceM = 12;  // M up to which int8 A is multiplied without packing B
inline constexpr int64_t kMaxAmxM = 512;     // M of a task of an AMX target
inline constexpr int64_t kMaxAmxN = 512;     // N of a task of an AMX target

// A block of y = x·W (sum over N), for one product or, for small m, several of a batch.
struct GemmTTask {
  const void* x;  // [m, n] f32 or 16 bits
  const void* w;  // [n, k], any alignment
  Element x_type, w_type;
  int64_t x_stride, w_stride, y_stride;  // w_stride of kU4 in bytes
  ScaleGrid grid;                        // column_begin is the position of the task's first column
  float* y;                              // [m, k], written
  int64_t m, n, k;                       // n > 0
  int64_t batches;                       // products; more than 1 only for m ≤ kMaxSmallM
  int64_t x_batch, w_batch, y_batch;  // from product to product: elements of x, bytes of w, floats
  int64_t grid_batch;                 // from product to product: rows of the grid
  // W of the product that the thread will probably read next, with the same shape, and the position
  // of its first row in the grid; null: none.
  const void* next_w;
  int64_t next_row_begin;
  const Tuning* tuning;
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
inline constexpr int64_t kMaxIndexWidth = 512;    // W of index_topk

// How a cached row [latent of c | rope part of r] is stored; tensor/cache_format.h.
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

// Absorbed attention of up to MlaDecodeKernel::max_rows rows to keys [key_begin, key_end) of their
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
  const Tuning* tuning;
  SplitOutputs outputs;
  void* scratch;  // kScratchBytes
};

// Scores of up to kIndexKeys keys for several tokens of one sequence, as IndexTopKOp defines them.
inline constexpr int64_t kIndexKeys = 64;
struct IndexScoreTask {
  const float* q;        // [rows, heads, width]
  const float* weights;  // [rows, heads]
  int64_t q_stride, q_head_stride, weights_stride;
  int64_t rows, heads, width;
  const void* pages;
  CachedRowLayout cache;  // c = width, r = 0
  int64_t page_tokens;
  const int32_t* page_table;
  int64_t key_begin, keys;
  float* scores;  // [rows, kIndexKeys], the first `keys` of each row written
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

// Expanded attention of up to MhaKernel::max_queries consecutive queries of one head.
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
  bool add;  // to y
};

// o = a·o + b·o_b in f64, rounded once.
struct MixTask {
  float* o;
  const float* o_b;
  int64_t count;
  double a, b;
};

// Rounds one row of activations to int8; QuantizeRowsOp of params/gemm.h.
struct QuantizeTask {
  const float* x;  // [k]
  int8_t* y;       // [k], written
  float* scale;    // [⌈k/group⌉], written
  int64_t k, group;
};

// WeightScale and BucketGrid of params/sampling.h, without their functions.
struct LogitWeights {
  float max, scale, cut;
};
struct LogitBuckets {
  float max, per_logit;
};
inline constexpr size_t kLogitBlock = 64;
inline constexpr int32_t kLogitBuckets = 2048;

// Kernels of matrix products and attention: their function, its limits, and what the launch files
// must know to divide a call into tasks. The tables (tables/*.cc) say when each is chosen.

// The rows and columns of C that a micro-kernel computes together, for listings: its largest tile,
// or the least and the most of tiles with several sizes.
struct TileSides {
  int64_t m = 0;  // 0: all rows
  int64_t n = 0;
  int64_t most_m = 0, most_n = 0;  // 0: as m and n
};

struct GemmKernel {
  void (*gemm)(const GemmTask&) = nullptr;  // any M and N up to the limits, of blocks of any size
  TileSides tile = {};
  void (*silu_mul)(const SiluMulTask&) = nullptr;
  int64_t max_m = 0, max_k = 0, min_n = 0;  // limits of the call; 0: none
  // Packs A once per call, if packs_a(type of B, M) or packs_a is null. Null: tasks read A where it
  // is.
  void (*pack_a)(const PackTask&) = nullptr;
  PackedBlock packed_block = {};
  bool (*packs_a)(Element w, int64_t m) = nullptr;
  bool amx_tiles = false;
  bool packs_in_task = false;  // every task packs its rows of int8 A, so it needs enough columns
  int64_t n_multiple = 0;      // for medium M, N of a task should be a multiple of it; 0: any
};

struct GemmTKernel {
  void (*gemm_t)(const GemmTTask&) = nullptr;
  TileSides tile = {};
  int64_t max_m = 0;            // limit of the call; 0: none
  int64_t batch_in_flight = 1;  // most products of one task
  bool whole_rows = false;      // converts x for every task, so a task takes whole rows of B
};

struct MlaDecodeKernel {
  void (*mla_decode)(const DecodeTask&) = nullptr;
  // Merges the results of `count` later splits into `to`, in order: [rows, c] each, `stride` floats
  // apart.
  void (*merge_splits)(const SplitResult& to, const SplitResult& from, int64_t stride,
                       int64_t count, int64_t rows, int64_t c) = nullptr;
  // o /= sum, and lse (may be null) from max and sum. A row that saw no key stays zero.
  void (*normalize_split)(const SplitResult&, int64_t rows, int64_t c, float* lse) = nullptr;
  int64_t max_rows = kMaxDecodeRows;  // most rows of one task
};

struct IndexTopKKernel {
  void (*scores)(const IndexScoreTask&) = nullptr;
};

struct MhaKernel {
  void (*mha)(const MhaTask&) = nullptr;
  int64_t max_queries = kMaxQueries;  // most queries of one task
};

// A bit of the CPUID instruction: the processor has the feature if it is set.
struct CpuFeature {
  enum Register { kEax, kEbx, kEcx, kEdx };

  const char* name;  // "AVX2"; null: no feature
  uint32_t leaf, subleaf;
  Register register_;
  int bit;
};

// What an instruction set needs, and its functions other than the kernels above. A function that it
// lacks is null.
struct Target {
  const char* name = nullptr;   // "avx2"
  CpuFeature features[6] = {};  // in addition to the lower levels
  uint64_t state = 0;           // XCR0: registers that the system must save
  // The number of a state that Linux gives on request only (arch_prctl); 0: none.
  int requested_state = 0;
  void (*gather_pages)(const GatherTask&) = nullptr;
  void (*rms_norm)(const RmsNormTask&) = nullptr;
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
  // Runs chains of f32 multiply-adds, of bf16 or of s8 dot products in registers or tiles; their
  // sum goes to `sink`. Returns the number of FLOPs.
  int64_t (*f32_peak)(int64_t rounds, float* sink) = nullptr;
  int64_t (*bf16_peak)(int64_t rounds, float* sink) = nullptr;
  int64_t (*s8_peak)(int64_t rounds, float* sink) = nullptr;
};

}  // namespace latte::cpu
