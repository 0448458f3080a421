#pragma once

#include "src/kernels/cuda/params/cache_rows.h"
#include "src/kernels/cuda/params/types.h"
#include "src/kernels/params/step_chunk.h"

namespace latte::cuda {

// Sequences of a step, which kernels read on the device. Row 0 is the first row of chunks[0].
struct SequenceTable {
  const StepChunk* chunks;  // [count]
  const int32_t* pages;     // of chunks[0], and of the others after them
  int32_t count;
};

struct MlaDecodeParams {
  const float *q_latent, *q_rope;  // [t, h, c], [t, h, r]
  int64_t latent_stride, latent_head, rope_stride, rope_head;
  CacheRows cache;
  float *o, *lse;            // [t, h, c], [t, h]; lse may be null
  const int32_t* positions;  // [t, most]; null: all keys
  int32_t most, h;
  float scale;
  SequenceTable sequences;
};

struct IndexTopKParams {
  const float *q, *weights;  // [t, h, w], [t, h]
  int64_t q_stride, q_head, weights_stride;
  CacheRows cache;     // c: w
  int32_t* positions;  // [t, most]
  int32_t most, h;
  int32_t kept_scores;  // scores that shared memory holds
  SequenceTable sequences;
};

struct MhaParams {
  const float *q_nope, *q_rope, *k_nope, *k_rope, *v;
  int64_t q_nope_stride, q_nope_head, q_rope_stride, q_rope_head;
  int64_t k_nope_stride, k_nope_head, k_rope_stride, k_rope_head, v_stride, v_head;
  int64_t q_begin, key_begin;
  float *o, *lse;  // [t, h, width], [t, h]
  int32_t h, keys, n, r, width;
  float scale;
};

struct LseMergeParams {
  float *o, *lse;
  const float *o_b, *lse_b;
  int32_t m, width;
};

}  // namespace latte::cuda
