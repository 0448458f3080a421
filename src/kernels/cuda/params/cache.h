#pragma once

#include "src/kernels/cuda/params/cache_rows.h"
#include "src/kernels/cuda/params/types.h"

namespace latte::cuda {

struct AppendParams {
  const float *first, *second;  // [t, c], [t, r]
  int64_t first_stride, second_stride;
  const int64_t* slots;  // [t]
  CacheRows cache;
  int32_t t;
};

struct NormRopeAppendParams {
  float *latent, *q_rope;  // [t, c + r], [t, h, r]
  int64_t latent_stride, rope_stride, rope_head;
  const void* w;           // [c]
  const float *cos, *sin;  // [t, r/2]; null: nothing is rotated
  const int64_t* slots;
  CacheRows cache;  // base null: none is written
  int32_t t, h, c, r;
  int32_t interleaved;
  Element w_type;
  float eps;
};

struct GatherPagesParams {
  const int32_t* pages;  // of the sequence
  float* y;              // [s, c + r]
  int64_t key_begin;
  CacheRows cache;
  int32_t s;
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
