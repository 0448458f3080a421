// Logprobs of a prompt's tokens, from the logits of the tokens before them.
#pragma once

#include "src/engine/request/request_state.h"
#include "src/engine/step/runner.h"

namespace latte {

// Adds to output.prompt_logprobs what `chunk` gives, whose hidden states begin at row `first_row` of
// the runner's last step. Errors: of Logprobs.
[[nodiscard]] Status AddPromptLogprobs(Runner& runner, const SequenceChunk& chunk,
                                       int64_t first_row, const Machine& host, Output& output);

}  // namespace latte
