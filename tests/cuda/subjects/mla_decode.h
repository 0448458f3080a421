// The parameters of the decode kernels. Plain data, the same on host and device.
//
//   s[t,h,j] = scale · (q_latent[t,h,:]·c_kv[j,:] + q_rope[t,h,:]·k_rope[j,:])    j ≤ position of t
//   o[t,h,:] = Σ_j softmax_j(s[t,h,:]) · c_kv[j,:]         lse[t,h] = ln Σ_j exp(s[t,h,j])
//
// A row is one (token, head) pair, packed as token·H + head. A row that sees no key has o = 0 and
// lse = −inf. Keys are split at multiples of split_tokens, whatever else is in the batch.
#pragma once

#include <cstdint>

#include "src/kernels/cuda/words/types.h"

namespace latte::cuda {

constexpr int kLatent = 512;
constexpr int kRope = 64;
constexpr int kWidth = kLatent + kRope;

struct Sequence {
  int32_t query_start;  // its first token in q_latent
  int32_t query_len;    // its new tokens
  int32_t total_len;    // cached tokens, the new ones included
  int32_t table_start;  // its first entry in page_table
};

struct MlaDecodeParams {
  const float* q_latent;      // [T, H, 512]
  const float* q_rope;        // [T, H, 64]
  const uint16_t* pages;      // [pages, P, 576] bf16
  const int32_t* page_table;  // each sequence's ⌈total_len/P⌉ pages, one after the other
  const Sequence* sequences;  // [B]
  float* o;                   // [splits, T·H, 512], written
  float* lse;                 // [splits, T·H], written, natural logarithm
  int64_t total_rows;         // T·H
  int32_t heads;
  int32_t page_tokens;
  int32_t splits;
  int32_t split_tokens;  // a multiple of the key tile
  float scale_log2;      // scale · log2(e)
};

// The same for sm_90a: TMA reads `pages`, whose box is 64 dims × box_keys keys of one page.
struct MlaDecodeSm90Params {
  TensorMap pages;
  MlaDecodeParams decode;
  int32_t box_keys;  // 64, 32 or 16; divides page_tokens
};

// Merges the splits of each row.
struct CombineParams {
  const float* o;    // [splits, rows, 512]; of a split with lse = −inf nothing is read
  const float* lse;  // [splits, rows]
  float* o_out;      // [rows, 512]
  float* lse_out;    // [rows]
  int64_t rows;
  int32_t splits;
};

}  // namespace latte::cuda
