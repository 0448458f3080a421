#include "src/engine/request/prompt_too_long.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace latte {
namespace {

// LiteLLM, OpenHands and others look for the first words.
constexpr std::string_view kBeforeMax = "this model's maximum context length is ";
constexpr std::string_view kBeforeTokens = " tokens, but the prompt has ";
constexpr std::string_view kAtLeast = "at least ";

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
          fmt::format("{}{}{}{}{}, and the answer needs at least one; shorten the prompt",
                      kBeforeMax, found.max_tokens, kBeforeTokens,
                      found.at_least ? kAtLeast : std::string_view(), found.tokens)};
}

std::optional<PromptTooLong> FindPromptTooLong(const Error& error) {
  std::string_view rest = error.message;
  PromptTooLong out;
  const bool begins = error.code == Code::kInvalidArgument && TakeText(kBeforeMax, &rest) &&
                      TakeCount(&out.max_tokens, &rest) && TakeText(kBeforeTokens, &rest);
  if (!begins) return std::nullopt;
  out.at_least = TakeText(kAtLeast, &rest);
  if (!TakeCount(&out.tokens, &rest)) return std::nullopt;
  return out;
}

Status CheckTextFits(size_t bytes, size_t max_token_bytes, int64_t max_tokens) {
  if (max_token_bytes == 0 || max_tokens <= 0) return {};
  const auto tokens = static_cast<int64_t>((bytes + max_token_bytes - 1) / max_token_bytes);
  if (tokens <= max_tokens) return {};
  return tl::unexpected(
      PromptTooLongError({.tokens = tokens, .max_tokens = max_tokens, .at_least = true}));
}

}  // namespace latte
