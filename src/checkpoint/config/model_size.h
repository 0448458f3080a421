// What a model weighs and what its cache costs, by arithmetic on its config alone: no weights are
// needed.
//
// Counting: every element of every tensor of the checkpoint is a parameter, e_score_correction_bias
// and biases included. Active parameters are those that one token's step touches: everything,
// embedding and head in full, except that of the E routed experts of a layer only the K chosen
// count. The multi-token-prediction layers are outside the total, and their copies of embedding and
// head count nowhere.
#pragma once

#include <cstdint>

#include "src/checkpoint/config/model_config.h"
#include "src/tensor/dtype.h"

namespace latte {

struct ParamCount {
  int64_t embedding = 0;
  int64_t head = 0;  // 0 when tied to the embedding
  int64_t attention = 0;
  int64_t indexer = 0;  // of sparse attention
  int64_t dense_mlp = 0;
  int64_t routed_experts = 0;
  int64_t shared_experts = 0;
  int64_t router = 0;
  int64_t norms = 0;
  int64_t mtp = 0;  // not in total()

  int64_t total() const {
    return embedding + head + attention + indexer + dense_mlp + routed_experts + shared_experts +
           router + norms;
  }
};

ParamCount CountParams(const ModelConfig& config);

// As CountParams, with only the chosen experts in routed_experts and without MTP layers.
ParamCount CountActiveParams(const ModelConfig& config);

// Bytes that one token keeps in the cache, all layers of the model together.
// Source of the formulas: DeepSeek-V2 (arXiv 2405.04434), Table 1.
struct CacheBytes {
  int64_t mla = 0;   // (C+R)·L
  int64_t mha = 0;   // H·(N+R+V)·L: the same model with K and V of every head kept
  int64_t gqa8 = 0;  // G·(N+V)·L, G = min(8, H): such heads shared by groups, without the R dims
};

CacheBytes CacheBytesPerToken(const ModelConfig& config, DType dtype);

}  // namespace latte
