// Reads the rotary-embedding keys of config.json into RopeConfig. src/layers/rope.h uses the
// values.
#pragma once

#include "latte/status.h"

#include "src/base/json.h"
#include "src/checkpoint/config/model_config.h"

namespace latte {

// Reads both forms: rope_theta with rope_scaling {type | rope_type, …}, and the nested
// rope_parameters {rope_theta, rope_type, …}, which takes precedence key by key.
// Errors: kCorrupt naming the key; kUnsupported for a scaling other than YaRN.
[[nodiscard]] Result<RopeConfig> ParseRope(const Json& config);

// Applies two rules of Mistral 4 alone: llama_4_scaling_beta sets the query temperature, and an
// attention_factor of 1 takes YaRN's factor off the scores too.
// Errors: kCorrupt naming the key.
[[nodiscard]] Status ParseMistralRope(const Json& config, RopeConfig& rope);

}  // namespace latte
