// Log-probabilities in the forms of the OpenAI API.
#pragma once

#include <span>

#include "latte/request.h"

#include "src/base/json_out_fwd.h"
#include "src/openai/request.h"
#include "src/text/tokenizer.h"

namespace latte {

// {"content": [{"token", "logprob", "bytes", "top_logprobs": […]}, …]} of /v1/chat/completions.
JsonOut ChatLogprobs(std::span<const TokenLogprobs> tokens, const Tokenizer& tokenizer);

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"} of /v1/completions; offsets count
// code points. With reply.echo the prompt goes first, its first token without a logprob.
// top_logprobs have the chosen token too.
JsonOut CompletionLogprobs(std::span<const TokenLogprobs> prompt,
                           std::span<const TokenLogprobs> tokens, const OpenAiReply& reply,
                           const Tokenizer& tokenizer);

// [null, {"id": {"logprob", "decoded_token"}, …}, …]: one for every token of the prompt, with `top`
// alternatives and the token itself.
JsonOut PromptLogprobs(std::span<const TokenLogprobs> prompt, int top, const Tokenizer& tokenizer);

}  // namespace latte
