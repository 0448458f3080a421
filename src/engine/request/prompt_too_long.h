// The error of a prompt that leaves no room for an answer. Clients recognise it by its text, which
// differs between APIs (src/api/common/error.h). Ranks transfer errors as a code and a message, so
// the figures are parsed from the message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "latte/status.h"

namespace latte {

struct PromptTooLong {
  int64_t tokens = 0;      // of the prompt
  int64_t max_tokens = 0;  // of prompt and answer together
  bool at_least = false;   // the prompt was not tokenised
};

// kInvalidArgument.
Error PromptTooLongError(const PromptTooLong& found);

// nullopt for every other error.
std::optional<PromptTooLong> FindPromptTooLong(const Error& error);

// Refuses a text that is too long however its tokens fall, before the time is spent to tokenise it.
// `max_token_bytes`: Tokenizer::max_token_bytes; 0: any text passes, and so it does with
// `max_tokens` 0. Errors: PromptTooLongError.
[[nodiscard]] Status CheckTextFits(size_t bytes, size_t max_token_bytes, int64_t max_tokens);

}  // namespace latte
