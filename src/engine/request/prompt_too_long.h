// The error of a prompt that leaves no room for an answer. Clients recognise it by its words, and
// each API has its own (src/openai/error.h). Ranks pass errors on as a code and a message, so the
// figures are read from the message.
#pragma once

#include <cstdint>
#include <optional>

#include "latte/status.h"

namespace latte {

struct PromptTooLong {
  int64_t tokens = 0;      // of the prompt
  int64_t max_tokens = 0;  // of prompt and answer together
};

// kInvalidArgument.
Error PromptTooLongError(const PromptTooLong& found);

// nullopt for every other error.
std::optional<PromptTooLong> FindPromptTooLong(const Error& error);

}  // namespace latte
