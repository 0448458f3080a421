// The generation loop of one sequence: prompt, then token by token until a stop.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "src/engine/run/session.h"

namespace latte {

struct GenerateResult {
  std::vector<int32_t> tokens;  // generated, a final end-of-sequence token excluded
  FinishReason reason = FinishReason::kLength;
  double prompt_seconds = 0;    // until the first token was drawn: time to first token
  double generate_seconds = 0;  // from the first token to the last
};

struct GenerateOptions {
  SamplingParams sampling;
  int64_t max_new_tokens = 256;
  int64_t min_new_tokens = 0;             // before them stop tokens are not drawn
  std::vector<int64_t> stop_tokens;       // ids that end the sequence
  std::function<bool(int32_t)> on_token;  // called for each token; false stops
};

// Errors: of Session and Sample.
[[nodiscard]] Result<GenerateResult> Generate(Session& session, std::span<const int32_t> prompt,
                                              const GenerateOptions& options);

}  // namespace latte
