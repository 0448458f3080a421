#pragma once

#include "src/kernels/cuda/params/types.h"

namespace latte::cuda {

struct RouteParams {
  const float* logits;  // [t, e]
  const float* bias;    // [e]; may be null
  int32_t* experts;     // [t, chosen]
  float* weights;       // [t, chosen]
  int64_t logits_stride;
  int32_t e, chosen, groups, groups_kept;
  int32_t sigmoid, top2_sum, normalize;
  float scale;
};

struct GroupByExpertParams {
  const int32_t* experts;  // [pairs]
  int32_t *first, *token, *row;
  int32_t pairs, chosen, e;
};

struct CombineParams {
  const float* x;  // [m, d]
  const int32_t* rows;
  const float* weights;
  float* y;  // [t, d]
  int32_t chosen, d, add;
};

}  // namespace latte::cuda
