#include "src/engine/attention_mode.h"

#include <fmt/format.h>

#include "src/layers/mla/mla.h"

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
  for (const AttentionMode mode : {AttentionMode::kAuto, AttentionMode::kDecompressed,
                                   AttentionMode::kLatent, AttentionMode::kAbsorbed})
    if (text == Name(mode)) return mode;
  return InvalidArgument(fmt::format(
      "--attention: expected auto, decompressed, latent or absorbed, found '{}'", text));
}

MlaPath PromptPath(AttentionMode mode) {
  switch (mode) {
    case AttentionMode::kDecompressed:
      return MlaPath::kDecompressed;
    case AttentionMode::kAbsorbed:
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

CacheSpec CacheSpecFor(const ModelConfig& config, AttentionMode mode, CacheDType cache,
                       int64_t page_tokens) {
  return {MlaCacheStreams(config.mla, PromptPath(mode), cache), config.layers, page_tokens};
}

}  // namespace latte
