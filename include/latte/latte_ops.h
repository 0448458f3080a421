// Part of latte.h, which includes it: kernels of attention and matrix products over plain arrays,
// for programs that compare them with their own code. The rules of latte.h apply here, too.
//
// Arrays are float, row-major, without gaps; all sizes are at least 1. `dtype`, "f32", "bf16" or
// "f16", is the type to which the stored operand is rounded before the kernel reads it.
// Symbols: T new tokens · B sequences · S keys · H heads · C, R widths of a cached row's latent and
// rope part · N, V widths of a head's keys and values · P tokens per page.
#ifndef LATTE_LATTE_OPS_H_
#define LATTE_LATTE_OPS_H_

#include "latte/latte.h"

#ifdef __cplusplus
extern "C" {
#endif

// The kernels of this machine and threads to run them. Thread-safe.
typedef struct latte_ops latte_ops;

// threads: 0: one per processor. `*ops` is NULL after an error.
latte_code latte_ops_create(int32_t threads, latte_ops** ops, latte_error* error);
void latte_ops_destroy(latte_ops* ops);  // NULL is allowed

// y = x·wᵀ: x [m, k], w [n, k], rounded to `dtype`, y [m, n].
latte_code latte_op_gemm(latte_ops* ops, const float* x, const float* w, float* y, int64_t m,
                         int64_t n, int64_t k, const char* dtype, latte_error* error);

// Absorbed attention of the new tokens of B sequences to a paged cache of latents:
//   s[t,h,j] = scale · ( q_latent[t,h,:]·c[j,:] + q_rope[t,h,:]·r[j,:] ) for j up to the token
//   itself
//   o_latent[t,h,:] = Σ_j softmax_j(s[t,h,:]) · c[j,:],   lse[t,h] = log Σ_j exp(s[t,h,j])
// where row j of a sequence, [c | r], is row j mod P of its page number ⌊j/P⌋.
typedef struct latte_mla_decode {
  size_t size;
  const float* q_latent;      // [T, H, C]
  const float* q_rope;        // [T, H, R]
  const float* pages;         // [page_count, P, C+R], rounded to dtype
  const int32_t* page_table;  // [B, page_table_width] page ids of each sequence, in order
  const int64_t* lengths;     // [B] tokens of each sequence, its new ones included
  const int64_t* new_tokens;  // [B] of them, rows of the queries in order; their sum is T
  float* o_latent;            // [T, H, C], written
  float* lse;                 // [T, H], written
  int64_t t;                  // the sizes of these shapes
  int64_t h;
  int64_t c;
  int64_t r;
  int64_t b;
  int64_t page_count;
  int64_t page_tokens;  // P: 16, 32, 64, 128 or 256
  int64_t page_table_width;
  const char* dtype;
  double scale;  // above 0
} latte_mla_decode;
latte_code latte_op_mla_decode(latte_ops* ops, const latte_mla_decode* arrays, latte_error* error);

// Expanded causal attention of T queries to S ≥ T keys; query t is at position S − T + t:
//   s[t,h,j] = scale · ( q_nope[t,h,:]·k_nope[j,h,:] + q_rope[t,h,:]·k_rope[j,:] ) for j ≤ S − T +
//   t
//   o[t,h,:] = Σ_j softmax_j(s[t,h,:]) · v[j,h,:],   lse[t,h] = log Σ_j exp(s[t,h,j])
typedef struct latte_mla_prefill {
  size_t size;
  const float* q_nope;  // [T, H, N]
  const float* q_rope;  // [T, H, R]
  const float* k_nope;  // [S, H, N]
  const float* k_rope;  // [S, R], the same for all heads
  const float* v;       // [S, H, V]
  float* o;             // [T, H, V], written
  float* lse;           // [T, H], written
  int64_t t;            // the sizes of these shapes
  int64_t s;
  int64_t h;
  int64_t n;
  int64_t r;
  int64_t v_width;    // V
  const char* dtype;  // of the arithmetic
  double scale;       // above 0
} latte_mla_prefill;
latte_code latte_op_mla_prefill(latte_ops* ops, const latte_mla_prefill* arrays,
                                latte_error* error);

#ifdef __cplusplus
}
#endif

#endif  // LATTE_LATTE_OPS_H_
