// Reads the rotary-embedding keys of config.json into RopeConfig. src/layers/rope.h uses the
// values.
#pragma once

#include "latte/status.h"

#include "src/base/json.h"
#include "src/checkpoint/config/model_family.h"

namespace latte {

// Reads both forms: rope_theta with rope_scaling {type | rope_type, …}, and the nested
// rope_parameters {rope_theta, rope_type, …}, which takes precedence key by key. `r` is the width
// of the rotated part of a head.
//
// Of the two lists of LongRoPE one holds at every position; docs/math/mla.md §6 says which, and
// why.
//
// Errors: kCorrupt naming the key; kUnsupported for a scaling that the family lacks.
[[nodiscard]] Result<RopeConfig> ParseRope(const Json& config, const ClassDefaults& defaults,
                                           int64_t r);

// Applies two rules of Mistral 4 alone: llama_4_scaling_beta sets the query temperature, and an
// attention_factor of 1 takes YaRN's factor off the scores too.
// Errors: kCorrupt naming the key.
[[nodiscard]] Status ParseMistralRope(const Json& config, RopeConfig& rope);

}  // namespace latte
