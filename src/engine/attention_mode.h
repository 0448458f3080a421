// The ways to evaluate attention that a user can choose, and what they mean for paths and cache.
#pragma once

#include <string_view>

#include "latte/status.h"

#include "src/cache/latent_cache.h"
#include "src/checkpoint/config/model_config.h"
#include "src/layers/step_context.h"

namespace latte {

// --attention. kAuto: prompts take the cheaper of the latent and the absorbed path, generated tokens
// the absorbed path.
enum class AttentionMode { kAuto, kDecompressed, kLatent, kAbsorbed };

// --deterministic. The conditions besides threads that may not change a byte. kStrict: batch, chunks,
// preemption, and how much of a prompt was cached; all prompts take one path, and rows of generated
// tokens are not reused for them. kOn: batch, chunks and preemption. kOff: nothing else.
enum class Determinism { kStrict, kOn, kOff };

std::string_view Name(Determinism level);
// Errors: kInvalidArgument listing the levels.
[[nodiscard]] Result<Determinism> ParseDeterminism(std::string_view text);

std::string_view Name(AttentionMode mode);
// Errors: kInvalidArgument listing the modes.
[[nodiscard]] Result<AttentionMode> ParseAttentionMode(std::string_view text);

// The path of all prompts under a fixed mode or strict determinism.
MlaPath PromptPath(AttentionMode mode);
// The path of generated tokens.
MlaPath DecodePath(AttentionMode mode);

// The format of the cache must fit `mode`. Errors: kInvalidArgument for a format of latents under
// kDecompressed, which caches keys and values.
[[nodiscard]] Status CheckCacheDType(AttentionMode mode, CacheDType cache);
CacheSpec CacheSpecFor(const ModelConfig& config, AttentionMode mode, CacheDType cache,
                       int64_t page_tokens);

}  // namespace latte
