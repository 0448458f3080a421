#include "src/engine/core/prompt_logprobs.h"

#include <algorithm>

#include "src/engine/sampling/sampler.h"

namespace latte {
namespace {

// Logits are computed in blocks of rows, as the logits of a step are.
constexpr int64_t kPromptRowsPerBlock = 64;

}  // namespace

Status AddPromptLogprobs(Runner& runner, const SequenceChunk& chunk, int64_t first_row,
                         const Machine& host, Output& output) {
  const Sequence& s = output.sequence;
  const int64_t last = std::min(chunk.total_len(), s.prompt_len - 1);
  // A preempted sequence computes some rows again; their logprobs have been emitted.
  int64_t at = std::max(chunk.cached_len, static_cast<int64_t>(output.prompt_logprobs.size()));
  while (at < last) {
    const int64_t end = std::min(last, at + kPromptRowsPerBlock);
    std::vector<int64_t> rows;
    for (int64_t i = at; i < end; ++i) rows.push_back(first_row + i - chunk.cached_len);
    const TensorView logits = runner.LogitsOf(rows);
    for (int64_t i = at; i < end; ++i) {
      const std::span<const float> one(logits.Row<float>(i - at),
                                       static_cast<size_t>(logits.shape[1]));
      LATTE_ASSIGN_OR_RETURN(TokenLogprobs logprobs,
                             Logprobs(one, s.tokens[static_cast<size_t>(i) + 1],
                                      output.request().prompt_logprobs, host));
      output.prompt_logprobs.push_back(std::move(logprobs));
    }
    at = end;
  }
  return {};
}

}  // namespace latte
