#include "src/engine/request/prompt_too_long.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace latte {
namespace {

// LiteLLM, OpenHands and others look for the first words.
constexpr std::string_view kBeforeMax = "this model's maximum context length is ";
constexpr std::string_view kBeforeTokens = " tokens, but the prompt has ";

bool TakeText(std::string_view text, std::string_view* from) {
  if (!from->starts_with(text)) return false;
  from->remove_prefix(text.size());
  return true;
}

bool TakeCount(int64_t* out, std::string_view* from) {
  const auto [end, error] = std::from_chars(from->data(), from->data() + from->size(), *out);
  if (error != std::errc()) return false;
  from->remove_prefix(static_cast<size_t>(end - from->data()));
  return true;
}

}  // namespace

Error PromptTooLongError(const PromptTooLong& found) {
  return {Code::kInvalidArgument,
          fmt::format("{}{}{}{}, and the answer needs at least one; shorten the prompt", kBeforeMax,
                      found.max_tokens, kBeforeTokens, found.tokens)};
}

std::optional<PromptTooLong> FindPromptTooLong(const Error& error) {
  std::string_view rest = error.message;
  PromptTooLong out;
  const bool found = error.code == Code::kInvalidArgument && TakeText(kBeforeMax, &rest) &&
                     TakeCount(&out.max_tokens, &rest) && TakeText(kBeforeTokens, &rest) &&
                     TakeCount(&out.tokens, &rest);
  if (!found) return std::nullopt;
  return out;
}

}  // namespace latte
