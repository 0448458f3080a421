#include "src/engine/core/prompt_logprobs.h"

#include <algorithm>

#include "src/engine/sampling/sampler.h"

namespace latte {

PromptRows WantedPromptRows(const SequenceChunk& chunk, const Output& output) {
  if (output.request().prompt_logprobs < 0 || output.generated > 0) return {};
  const int64_t end = std::min(chunk.total_len(), output.sequence.prompt_len - 1);
  // A preempted sequence computes some rows again; their logprobs have been emitted.
  const int64_t begin = std::max(chunk.cached_len, std::ssize(output.prompt_logprobs));
  return {std::min(begin, end), end};
}

Status AddPromptLogprobs(int64_t first, const TensorView& logits, const Machine& host,
                         Output& output) {
  for (int64_t i = 0; i < logits.shape[0]; ++i) {
    const std::span<const float> one(logits.Row<float>(i), static_cast<size_t>(logits.shape[1]));
    const int32_t next = output.sequence.tokens[static_cast<size_t>(first + i) + 1];
    LATTE_ASSIGN_OR_RETURN(TokenLogprobs logprobs,
                           Logprobs(one, next, output.request().prompt_logprobs, host));
    output.prompt_logprobs.push_back(std::move(logprobs));
  }
  return {};
}

}  // namespace latte
