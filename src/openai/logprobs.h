// Log-probabilities in the formats of the OpenAI API.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "latte/request.h"

#include "src/base/json_out_fwd.h"
#include "src/openai/request.h"
#include "src/text/tokenizer.h"

namespace latte {

// The bytes of a token as text; if they are not whole characters, "bytes:\xe2\x80".
std::string TokenText(const Tokenizer& tokenizer, int32_t id);

// {"content": [{"token", "logprob", "bytes", "top_logprobs": […]}, …], "refusal": null} of
// /v1/chat/completions.
JsonOut ChatLogprobs(std::span<const TokenLogprobs> tokens, const Tokenizer& tokenizer);

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"} of /v1/completions; offsets count
// code points. The first token of a prompt has no logprob. top_logprobs
// include the chosen token. `offset`: of the first token; becomes that of the token after the last.
struct CompletionTokens {
  const OpenAiPrompt* echoed = nullptr;  // the prompt comes first
  std::span<const TokenLogprobs> prompt;
  std::span<const TokenLogprobs> tokens;
};
JsonOut CompletionLogprobs(const CompletionTokens& shown, const OpenAiReply& reply,
                           const Tokenizer& tokenizer, int64_t* offset);

// [null, {"id": {"logprob", "decoded_token"}, …}, …]: one entry per token of the prompt, with `top`
// alternatives and the token itself.
JsonOut PromptLogprobs(std::span<const TokenLogprobs> prompt, int top, const Tokenizer& tokenizer);

}  // namespace latte
