// Kernels over plain arrays, for programs that compare them with their own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "latte/status.h"

#include "src/base/thread_pool.h"
#include "src/kernels/machine.h"
#include "src/tensor/dtype.h"

namespace latte {

// All arrays are f32, row-major, without gaps. Sizes are at least 1. The functions check sizes and
// indices, and name what is wrong (kInvalidArgument); kExhausted if memory runs out. Thread-safe:
// calls from several threads take turns.

// y = x·wᵀ.
struct GemmArrays {
  const float* x = nullptr;  // [M, K]
  const float* w = nullptr;  // [N, K]
  float* y = nullptr;        // [M, N], written
  int64_t m = 0, n = 0, k = 0;
  DType dtype = DType::kF32;  // that w is rounded to: f32, bf16 or f16
};

// Absorbed attention over a paged cache of latents: MlaDecodeOp.
struct MlaDecodeArrays {
  const float* q_latent = nullptr;           // [T, H, C]
  const float* q_rope = nullptr;             // [T, H, R]
  const float* pages = nullptr;              // [pages, P, C+R]
  const int32_t* page_table = nullptr;       // [B, page_table_width]
  std::span<const int64_t> lengths = {};     // [B] tokens of each sequence, the new ones included
  std::span<const int64_t> new_tokens = {};  // [B] of them, rows of the queries; their sum is T
  float* o_latent = nullptr;                 // [T, H, C], written
  float* lse = nullptr;                      // [T, H], written
  int64_t t = 0, h = 0, c = 0, r = 0;
  int64_t page_count = 0, page_tokens = 0, page_table_width = 0;
  float scale = 0;
  DType dtype = DType::kF32;  // that the pages are rounded to: f32, bf16 or f16
};

// Expanded causal attention of T queries to S keys, the last of which is at the last query: MhaOp.
struct MlaPrefillArrays {
  const float* q_nope = nullptr;  // [T, H, N]
  const float* q_rope = nullptr;  // [T, H, R]
  const float* k_nope = nullptr;  // [S, H, N]
  const float* k_rope = nullptr;  // [S, R], of all heads
  const float* v = nullptr;       // [S, H, V]
  float* o = nullptr;             // [T, H, V], written
  float* lse = nullptr;           // [T, H], written
  int64_t t = 0, s = 0, h = 0, n = 0, r = 0, v_width = 0;
  float scale = 0;
  DType dtype = DType::kF32;  // of the arithmetic: f32, bf16 or f16
};

class ArrayOps {
 public:
  // threads: 0: one per processor. Errors: of Machine::Detect; kInvalidArgument for a negative
  // number.
  [[nodiscard]] static Result<std::unique_ptr<ArrayOps>> Create(int threads);

  [[nodiscard]] Status Gemm(const GemmArrays& a);
  [[nodiscard]] Status MlaDecode(const MlaDecodeArrays& a);
  [[nodiscard]] Status MlaPrefill(const MlaPrefillArrays& a);

 private:
  ArrayOps(Machine machine, int threads) : machine_(std::move(machine)), threads_(threads) {}
  template <class Op>
  void Run(const typename Op::Params& params);

  const Machine machine_;
  ThreadPool threads_;
};

}  // namespace latte
