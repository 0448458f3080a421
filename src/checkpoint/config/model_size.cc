#include "src/checkpoint/config/model_size.h"

#include <algorithm>

namespace latte {
namespace {

int64_t Attention(const MlaDims& m) {
  const int64_t q_rows = m.h * m.qk();
  const int64_t query = m.cq > 0 ? m.d * m.cq + m.cq * q_rows : m.d * q_rows;
  const int64_t key_value = m.d * m.latent() + m.c * m.h * (m.n + m.v);
  const int64_t output = m.h * m.v * m.d;
  // Without a query latent, no q_a projection exists that could have a bias.
  const int64_t bias = m.bias ? m.cq + m.latent() + m.d : 0;
  return query + key_value + output + bias;
}

// Two projections, the weights of the heads, and a norm with a bias.
int64_t Indexer(const IndexerDims& indexer, const MlaDims& m) {
  if (indexer.heads == 0) return 0;
  return indexer.heads * indexer.width * m.cq + indexer.width * m.d + indexer.heads * m.d +
         2 * indexer.width;
}

int64_t LayerNorms(const MlaDims& m) { return 2 * m.d + m.cq + m.c; }

int64_t GatedMlp(int64_t d, int64_t width) { return 3 * d * width; }

int64_t RouterSize(const ModelConfig& config) {
  const MoeDims& moe = config.moe;
  const bool biased = moe.router == Router::kNoauxTc && !moe.bias_optional;
  return moe.experts * config.mla.d + (biased ? moe.experts : 0);
}

// The feed-forward part of `layers` MoE layers, counting `experts` experts per layer.
void CountMoe(const ModelConfig& config, int64_t layers, int64_t experts, ParamCount& count) {
  const int64_t d = config.mla.d;
  count.routed_experts += layers * experts * GatedMlp(d, config.moe.width);
  count.shared_experts += layers * GatedMlp(d, config.moe.shared * config.moe.width);
  count.router += layers * RouterSize(config);
}

// One MTP layer: a decoder layer, the projection of [embedding; hidden], and three norms.
int64_t MtpLayer(const ModelConfig& config) {
  const int64_t d = config.mla.d;
  ParamCount ffn;
  if (config.moe.experts > 0)
    CountMoe(config, 1, config.moe.experts, ffn);
  else
    ffn.dense_mlp = GatedMlp(d, config.dense_width);
  return Attention(config.mla) + Indexer(config.indexer, config.mla) + LayerNorms(config.mla) +
         ffn.total() + 2 * d * d + 3 * d;
}

ParamCount Count(const ModelConfig& config, int64_t experts) {
  const int64_t d = config.mla.d;
  int64_t moe_layers = 0;
  int64_t indexers = 0;
  for (int64_t i = 0; i < config.layers; ++i) {
    moe_layers += config.IsMoe(i) ? 1 : 0;
    indexers += config.IsIndexed(i) ? 1 : 0;
  }
  ParamCount count;
  count.embedding = config.vocab * d;
  count.head = config.tied_embeddings ? 0 : config.vocab * d;
  count.attention = config.layers * Attention(config.mla);
  count.indexer = indexers * Indexer(config.indexer, config.mla);
  count.norms = config.layers * LayerNorms(config.mla) + d;
  if (config.moe.post_norm) count.norms += moe_layers * d;
  count.dense_mlp = (config.layers - moe_layers) * GatedMlp(d, config.dense_width);
  CountMoe(config, moe_layers, experts, count);
  return count;
}

}  // namespace

ParamCount CountParams(const ModelConfig& config) {
  ParamCount count = Count(config, config.moe.experts);
  count.mtp = config.mtp_layers * MtpLayer(config);
  return count;
}

ParamCount CountActiveParams(const ModelConfig& config) { return Count(config, config.moe.chosen); }

CacheBytes CacheBytesPerToken(const ModelConfig& config, DType dtype) {
  const MlaDims& m = config.mla;
  const int64_t per_layer = config.layers * SizeOf(dtype);
  int64_t indexers = 0;
  for (int64_t i = 0; i < config.layers; ++i) indexers += config.IsIndexed(i) ? 1 : 0;
  return {.mla = m.latent() * per_layer,
          .index_keys = indexers * config.indexer.width * SizeOf(dtype),
          .mha = m.expanded() * per_layer,
          .gqa8 = std::min<int64_t>(8, m.h) * (m.n + m.v) * per_layer};
}

int64_t IndexedLayers(const ModelConfig& config) {
  int64_t count = 0;
  for (int64_t i = 0; i < config.layers; ++i) count += config.IsIndexed(i) ? 1 : 0;
  return count;
}

}  // namespace latte
