// The attention modes of `--attention`, and their paths and cache.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/cache/latent_cache.h"
#include "src/checkpoint/config/model_config.h"
#include "src/layers/step_context.h"

namespace latte {

// --attention. kAuto: prompts take the cheaper of the latent and the absorbed path, generated
// tokens the absorbed path; tokens of a model with an indexer that see more keys than it chooses
// take the sparse path. kSparse: as kAuto with prompts on the absorbed path. The others attend to
// all keys.
enum class AttentionMode { kAuto, kDecompressed, kLatent, kAbsorbed, kSparse };

// --deterministic. The conditions besides threads that may not change a byte. kStrict: batch,
// chunks, preemption, and how much of a prompt was cached; all prompts take one path, and rows of
// generated tokens are not reused for them. kOn: batch, chunks and preemption. kOff: nothing else.
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

// The first position on the sparse path: the token there is the first that sees more keys than the
// model's indexer chooses. kNeverSparse if `mode` attends to all keys or the model has no indexer.
int64_t SparseFrom(const ModelConfig& config, AttentionMode mode);

// Errors: kInvalidArgument for kSparse and a model without an indexer.
[[nodiscard]] Status CheckMode(const ModelConfig& config, AttentionMode mode);

// For the user: that a model with an indexer attends to all keys under `mode`; else empty.
std::string DenseWarning(const ModelConfig& config, AttentionMode mode);

// The cache of the decoder's layers. A drafting layer may be added to `layers`: it has rows of
// every stream.
CacheSpec CacheSpecFor(const ModelConfig& config, AttentionMode mode, CacheDType cache,
                       int64_t page_tokens);

}  // namespace latte
