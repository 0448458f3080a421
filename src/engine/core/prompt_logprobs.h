// Logprobs of a prompt's tokens, from the logits of the tokens before them.
#pragma once

#include <span>

#include "src/engine/request/request_state.h"
#include "src/kernels/params/sequence_chunk.h"
#include "src/tensor/tensor.h"

namespace latte {

// The tokens [begin, end) of a prompt whose logits are wanted: each gives the logprobs of the token
// after it.
struct PromptRows {
  int64_t begin = 0;
  int64_t end = 0;
};

// The wanted tokens of `chunk`, which is to be computed. Empty for a request without
// prompt_logprobs.
PromptRows WantedPromptRows(const SequenceChunk& chunk, const Output& output);

// Adds to output.prompt_logprobs what `logits` [M, vocab] of tokens from `first` on give.
// Errors: of Logprobs.
[[nodiscard]] Status AddPromptLogprobs(int64_t first, const TensorView& logits, const Machine& host,
                                       Output& output);

}  // namespace latte
