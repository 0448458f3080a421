#pragma once

#include "src/kernels/cuda/params/types.h"

namespace latte::cuda {

struct AppendParams {
  const float *first, *second;  // [t, a], [t, width − a]
  int64_t first_stride, second_stride;
  void* cache;           // [pages · page_tokens, width]
  const int64_t* slots;  // [t]
  int32_t t, a, width;
  Element cache_type;
};

struct NormRopeAppendParams {
  float *latent, *q_rope;  // [t, c + r], [t, h, r]
  int64_t latent_stride, rope_stride, rope_head;
  const void* w;           // [c]
  const float *cos, *sin;  // [t, r/2]; null: nothing is rotated
  void* cache;             // null: none is written
  const int64_t* slots;
  int32_t t, h, c, r;
  int32_t interleaved;
  Element w_type, cache_type;
  float eps;
};

struct GatherPagesParams {
  const void* cache;     // [pages, page_tokens, width]
  const int32_t* pages;  // of the sequence
  float* y;              // [s, width]
  int64_t key_begin;
  int32_t s, page_tokens, width;
  Element cache_type;
};

// One page of up to kMostLayers layers.
struct CopyPageParams {
  static constexpr int kMostLayers = 256;

  int64_t from, to;  // bytes from the begin of a layer; −1: packed
  unsigned char* packed;
  int64_t page_bytes;
  unsigned char* layers[kMostLayers];
};

}  // namespace latte::cuda
