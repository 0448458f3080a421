// Log-probabilities in the formats of the OpenAI API.
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
// code points. With reply.echo the prompt comes first; its first token has no logprob. top_logprobs
// include the chosen token.
JsonOut CompletionLogprobs(std::span<const TokenLogprobs> prompt,
                           std::span<const TokenLogprobs> tokens, const OpenAiReply& reply,
                           const Tokenizer& tokenizer);

// [null, {"id": {"logprob", "decoded_token"}, …}, …]: one entry per token of the prompt, with `top`
// alternatives and the token itself.
JsonOut PromptLogprobs(std::span<const TokenLogprobs> prompt, int top, const Tokenizer& tokenizer);

}  // namespace latte
