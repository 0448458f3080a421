// generation_config.json: how a checkpoint's makers recommend to sample from it.
#pragma once

#include <cstdint>
#include <string>

#include "latte/request.h"
#include "latte/status.h"

namespace latte {

struct GenerationDefaults {
  double temperature = 0.0;  // 0: greedy, as for a checkpoint that does not say do_sample
  int64_t top_k = 0;         // 0: all tokens
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;  // said apart from do_sample

  // What a command or a request begins with, before its own values.
  void ApplyTo(SamplingParams* params) const;
};

// The recommendation of `dir`; greedy when the file is absent. Null is as good as absent; of top_k,
// -1 is as good as 0.
// Errors: kCorrupt naming file, key, the accepted range and what was found.
[[nodiscard]] Result<GenerationDefaults> LoadGenerationDefaults(const std::string& dir);

}  // namespace latte
