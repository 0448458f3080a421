#include "src/engine/attention_mode.h"

#include <fmt/format.h>

#include "src/layers/mla/mla.h"
#include "src/layers/path_groups.h"

namespace latte {

std::string_view Name(AttentionMode mode) {
  switch (mode) {
    case AttentionMode::kAuto:
      return "auto";
    case AttentionMode::kDecompressed:
      return "decompressed";
    case AttentionMode::kLatent:
      return "latent";
    case AttentionMode::kAbsorbed:
      return "absorbed";
    case AttentionMode::kSparse:
      return "sparse";
  }
  return "?";
}

std::string_view Name(Determinism level) {
  switch (level) {
    case Determinism::kStrict:
      return "strict";
    case Determinism::kOn:
      return "on";
    case Determinism::kOff:
      return "off";
  }
  return "?";
}

Result<Determinism> ParseDeterminism(std::string_view text) {
  for (const Determinism level : {Determinism::kStrict, Determinism::kOn, Determinism::kOff})
    if (text == Name(level)) return level;
  return InvalidArgument(
      fmt::format("--deterministic: expected strict, on or off, found '{}'", text));
}

Result<AttentionMode> ParseAttentionMode(std::string_view text) {
  for (const AttentionMode mode :
       {AttentionMode::kAuto, AttentionMode::kDecompressed, AttentionMode::kLatent,
        AttentionMode::kAbsorbed, AttentionMode::kSparse})
    if (text == Name(mode)) return mode;
  return InvalidArgument(fmt::format(
      "--attention: expected auto, decompressed, latent, absorbed or sparse, found '{}'", text));
}

MlaPath PromptPath(AttentionMode mode) {
  switch (mode) {
    case AttentionMode::kDecompressed:
      return MlaPath::kDecompressed;
    case AttentionMode::kAbsorbed:
    case AttentionMode::kSparse:
      return MlaPath::kAbsorbed;
    case AttentionMode::kAuto:
    case AttentionMode::kLatent:
      return MlaPath::kLatent;
  }
  return MlaPath::kLatent;
}

MlaPath DecodePath(AttentionMode mode) {
  return mode == AttentionMode::kAuto ? MlaPath::kAbsorbed : PromptPath(mode);
}

Status CheckCacheDType(AttentionMode mode, CacheDType cache) {
  if (mode == AttentionMode::kDecompressed && cache.kind != CacheFormat::kPlain)
    return InvalidArgument(fmt::format(
        "cache-dtype: expected bf16, f16 or f32 under decompressed attention, which caches keys "
        "and values, found {}, a format of latents; use --attention auto",
        Name(cache)));
  return {};
}

int64_t SparseFrom(const ModelConfig& config, AttentionMode mode) {
  const bool sparse = mode == AttentionMode::kAuto || mode == AttentionMode::kSparse;
  return sparse && config.indexer.heads > 0 ? config.indexer.topk : kNeverSparse;
}

Status CheckMode(const ModelConfig& config, AttentionMode mode) {
  if (mode == AttentionMode::kSparse && config.indexer.heads == 0)
    return InvalidArgument(fmt::format(
        "--attention: expected auto, decompressed, latent or absorbed for {}, which has no "
        "indexer, found sparse; use --attention auto",
        config.architecture));
  return {};
}

std::string DenseWarning(const ModelConfig& config, AttentionMode mode) {
  if (config.indexer.heads == 0 || SparseFrom(config, mode) != kNeverSparse) return "";
  return fmt::format(
      "{} chooses {} tokens for each query by an indexer; with --attention {} every query attends "
      "to all "
      "tokens, which is the same up to {} tokens and differs beyond",
      config.architecture, config.indexer.topk, Name(mode), config.indexer.topk);
}

CacheSpec CacheSpecFor(const ModelConfig& config, AttentionMode mode, CacheDType cache,
                       int64_t page_tokens) {
  CacheSpec out = {MlaCacheStreams(config.mla, PromptPath(mode), cache), config.layers,
                   page_tokens};
  if (SparseFrom(config, mode) == kNeverSparse) return out;
  CacheStream keys = IndexerCacheStream(config.indexer, cache);
  for (int64_t layer = 0; layer < config.layers; ++layer)
    if (!config.IsIndexed(layer)) keys.without.push_back(layer);
  out.streams.push_back(std::move(keys));
  return out;
}

}  // namespace latte
