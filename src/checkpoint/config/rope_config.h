// The rotary-embedding keys of config.json → RopeConfig. What the values mean is computed in
// src/layers/rope.h.
#pragma once

#include "latte/status.h"

#include "src/base/json.h"
#include "src/checkpoint/config/model_config.h"

namespace latte {

// Reads both spellings: rope_theta beside rope_scaling {type | rope_type, …}, and the nested
// rope_parameters {rope_theta, rope_type, …}, which wins key by key.
// Errors: kCorrupt naming the key; kUnsupported for a scaling other than YaRN.
[[nodiscard]] Result<RopeConfig> ParseRope(const Json& config);

}  // namespace latte
