// Log-probabilities in the formats of the OpenAI API. They are appended to the text of an answer: a
// client chooses their number, and a JSON tree of them would take several times their bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "latte/request.h"

#include "src/api/common/request.h"
#include "src/text/tokenizer.h"

namespace latte {

// The bytes of a token as text; if they are not whole characters, "bytes:\xe2\x80".
std::string TokenText(const Tokenizer& tokenizer, int32_t id);

// {"content": [{"token", "logprob", "bytes", "top_logprobs": […]}, …], "refusal": null} of
// /v1/chat/completions.
void AppendChatLogprobs(std::span<const TokenLogprobs> tokens, const Tokenizer& tokenizer,
                        std::string* out);

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"} of /v1/completions; offsets count
// code points. The first token of a prompt has no logprob. top_logprobs
// include the chosen token. `offset`: of the first token; becomes that of the token after the last.
struct CompletionTokens {
  const ApiPrompt* echoed = nullptr;  // the prompt comes first
  std::span<const TokenLogprobs> prompt;
  std::span<const TokenLogprobs> tokens;
};
void AppendCompletionLogprobs(const CompletionTokens& shown, const ApiReply& reply,
                              const Tokenizer& tokenizer, int64_t* offset, std::string* out);

// [null, {"id": {"logprob", "decoded_token"}, …}, …]: one entry per token of the prompt, with `top`
// alternatives and the token itself.
void AppendPromptLogprobs(std::span<const TokenLogprobs> prompt, int top,
                          const Tokenizer& tokenizer, std::string* out);

// The bytes that the tokens take at most in any of these formats.
int64_t MaxLogprobsBytes(std::span<const TokenLogprobs> tokens, const Tokenizer& tokenizer);

}  // namespace latte
