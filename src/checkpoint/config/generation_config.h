// generation_config.json: the sampling parameters that the makers of a checkpoint recommend.
#pragma once

#include <cstdint>
#include <string>

#include "latte/request.h"
#include "latte/status.h"

namespace latte {

struct GenerationDefaults {
  bool recommended = false;  // the checkpoint has the file
  double temperature = 0.0;  // 0: greedy, also without do_sample
  int64_t top_k = 0;         // 0: all tokens
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;  // does not depend on do_sample

  // Sets the defaults of a command or a request, before its own values.
  void ApplyTo(SamplingParams* params) const;
};

// The recommendation of `dir`; greedy if the file is absent. Null counts as absent, and top_k = -1
// as 0.
// Errors: kCorrupt naming file, key, accepted range and the value found.
[[nodiscard]] Result<GenerationDefaults> LoadGenerationDefaults(const std::string& dir);

}  // namespace latte
