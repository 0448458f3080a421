// Computes the number of parameters and the cache size of a model from its config alone; no weights
// are needed.
//
// Every element of every tensor of the checkpoint is a parameter, including e_score_correction_bias
// and biases. Active parameters are the parameters that one token uses: everything, including all
// of embedding and head, but only the K chosen of the E routed experts per layer. The total
// excludes multi-token-prediction layers; their copies of embedding and head are not counted at
// all.
#pragma once

#include <cstdint>

#include "src/checkpoint/config/model_config.h"
#include "src/tensor/dtype.h"

namespace latte {

struct ParamCount {
  int64_t embedding = 0;
  int64_t head = 0;  // 0 if tied to the embedding
  int64_t attention = 0;
  int64_t indexer = 0;  // the indexer of sparse attention
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

// Decoder layers that own an indexer.
int64_t IndexedLayers(const ModelConfig& config);

// Bytes per token in the cache, for all layers together. Source of the formulas: DeepSeek-V2 (arXiv
// 2405.04434), Table 1.
struct CacheBytes {
  int64_t mla = 0;         // (C+R)·L
  int64_t index_keys = 0;  // W·(layers that own an indexer)
  int64_t mha = 0;         // H·(N+R+V)·L: the same model with K and V of every head
  int64_t gqa8 = 0;  // G·(N+V)·L, G = min(8, H): grouped-query attention with heads of this width,
                     // without the R dims
};

CacheBytes CacheBytesPerToken(const ModelConfig& config, DType dtype);

}  // namespace latte
