#include "latte/request.h"

#include <fmt/format.h>

#include "src/base/fields/fields.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

// Errors: kInvalidArgument unless `ok`.
template <class T>
Status Require(bool ok, std::string_view field, std::string_view expected, const T& found) {
  if (ok) return {};
  return InvalidArgument(fmt::format("{}: expected {}, found {}", field, expected, found));
}

// Errors: kInvalidArgument for a list with more entries than its field allows.
template <class T, class List>
Status CheckCount(std::string_view field, std::string_view label, std::string_view entries,
                  const List& list) {
  const auto most = static_cast<size_t>(FieldOf<T>(field).most);
  return Require(list.size() <= most, label, fmt::format("at most {} {}", most, entries),
                 list.size());
}

Status CheckBias(const SamplingParams& params) {
  LATTE_RETURN_IF_ERROR(
      CheckCount<SamplingParams>("logit_bias", "logit_bias", "tokens", params.logit_bias));
  const Field field = FieldOf<SamplingParams>("logit_bias");
  for (const auto& [token, bias] : params.logit_bias) {
    LATTE_RETURN_IF_ERROR(Require(token >= 0, "logit_bias", "token ids of 0 or more", token));
    LATTE_RETURN_IF_ERROR(
        CheckField(field, fmt::format("logit_bias of token {}", token), static_cast<double>(bias)));
  }
  return {};
}

Status CheckNotNegative(std::string_view field, const std::vector<int32_t>& tokens) {
  for (const int32_t token : tokens)
    LATTE_RETURN_IF_ERROR(Require(token >= 0, field, "token ids of 0 or more", token));
  return {};
}

Status CheckStrings(const std::vector<std::string>& strings) {
  constexpr size_t kLongest = 256;
  for (const std::string& text : strings)
    LATTE_RETURN_IF_ERROR(Require(!text.empty() && text.size() <= kLongest, "stop",
                                  "strings of 1 to 256 bytes",
                                  fmt::format("one of {}", text.size())));
  for (const std::string& text : strings)
    LATTE_RETURN_IF_ERROR(Require(ValidUtf8Prefix(text) == text.size(), "stop", "UTF-8 text",
                                  "a string that is not"));
  return {};
}

}  // namespace

Status SamplingParams::Validate() const {
  LATTE_RETURN_IF_ERROR(CheckFields(*this, '_'));
  return CheckBias(*this);
}

Status StopConditions::Validate() const {
  if (max_tokens >= 0)
    LATTE_RETURN_IF_ERROR(Require(min_tokens >= 0 && min_tokens <= max_tokens, "min_tokens",
                                  fmt::format("a number in [0, max_tokens = {}]", max_tokens),
                                  min_tokens));
  LATTE_RETURN_IF_ERROR(CheckFields(*this, '_'));
  LATTE_RETURN_IF_ERROR(CheckCount<StopConditions>("tokens", "stop tokens", "ids", tokens));
  LATTE_RETURN_IF_ERROR(CheckNotNegative("stop tokens", tokens));
  LATTE_RETURN_IF_ERROR(CheckCount<StopConditions>("strings", "stop", "strings", strings));
  return CheckStrings(strings);
}

Status Request::Validate() const {
  LATTE_RETURN_IF_ERROR(CheckNotNegative("tokens", tokens));
  LATTE_RETURN_IF_ERROR(sampling.Validate());
  LATTE_RETURN_IF_ERROR(stop.Validate());
  return CheckFields(*this, '_');
}

inline namespace v0_2 {

std::string_view Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "unknown";
}

}  // namespace v0_2
}  // namespace latte
