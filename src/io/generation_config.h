// generation_config.json: how a checkpoint's makers recommend to sample from it.
#pragma once

#include <cstdint>
#include <string>

#include "latte/status.h"

namespace latte {

struct GenerationDefaults {
  double temperature = 0.0;  // 0: greedy, as for a checkpoint that does not say do_sample
  int64_t top_k = 0;         // 0: all tokens
  double top_p = 1.0;
  double repetition_penalty = 1.0;  // said apart from do_sample
};

// The recommendation of `dir`; greedy when the file is absent.
// Errors: kCorrupt naming the key.
[[nodiscard]] Result<GenerationDefaults> LoadGenerationDefaults(const std::string& dir);

}  // namespace latte
