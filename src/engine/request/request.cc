#include "latte/request.h"

#include <fmt/format.h>

#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

// Errors: kInvalidArgument unless `ok`.
template <class T>
Status Require(bool ok, std::string_view field, std::string_view expected, const T& found) {
  if (ok) return {};
  return InvalidArgument(fmt::format("{}: expected {}, found {}", field, expected, found));
}

// False for NaN.
bool Within(double value, double low, double high) { return value >= low && value <= high; }

Status CheckBias(const SamplingParams& params) {
  constexpr size_t kMost = 1024;
  LATTE_RETURN_IF_ERROR(Require(params.logit_bias.size() <= kMost, "logit_bias",
                                "at most 1024 tokens", params.logit_bias.size()));
  for (const auto& [token, bias] : params.logit_bias) {
    LATTE_RETURN_IF_ERROR(Require(token >= 0, "logit_bias", "token ids of 0 or more", token));
    LATTE_RETURN_IF_ERROR(Require(Within(static_cast<double>(bias), -100, 100),
                                  fmt::format("logit_bias of token {}", token),
                                  "a number in [-100, 100]", bias));
  }
  return {};
}

Status CheckTokens(std::string_view field, const std::vector<int32_t>& tokens) {
  for (const int32_t token : tokens)
    LATTE_RETURN_IF_ERROR(Require(token >= 0, field, "token ids of 0 or more", token));
  return {};
}

}  // namespace

Status SamplingParams::Validate() const {
  LATTE_RETURN_IF_ERROR(
      Require(Within(temperature, 0, 100), "temperature", "a number in [0, 100]", temperature));
  LATTE_RETURN_IF_ERROR(Require(top_k >= 0, "top_k", "0 (all) or more", top_k));
  LATTE_RETURN_IF_ERROR(Require(top_p > 0 && top_p <= 1, "top_p", "a number in (0, 1]", top_p));
  LATTE_RETURN_IF_ERROR(Require(Within(min_p, 0, 1), "min_p", "a number in [0, 1]", min_p));
  LATTE_RETURN_IF_ERROR(Require(repetition_penalty > 0 && repetition_penalty <= 100,
                                "repetition_penalty", "a number in (0, 100]", repetition_penalty));
  LATTE_RETURN_IF_ERROR(Require(Within(presence_penalty, -2, 2), "presence_penalty",
                                "a number in [-2, 2]", presence_penalty));
  LATTE_RETURN_IF_ERROR(Require(Within(frequency_penalty, -2, 2), "frequency_penalty",
                                "a number in [-2, 2]", frequency_penalty));
  return CheckBias(*this);
}

Status StopConditions::Validate() const {
  constexpr size_t kMostTokens = 128;
  constexpr size_t kMostStrings = 16;
  constexpr size_t kLongest = 256;
  LATTE_RETURN_IF_ERROR(Require(max_tokens >= 0, "max_tokens", "0 or more", max_tokens));
  LATTE_RETURN_IF_ERROR(Require(min_tokens >= 0 && min_tokens <= max_tokens, "min_tokens",
                                fmt::format("a number in [0, max_tokens = {}]", max_tokens),
                                min_tokens));
  LATTE_RETURN_IF_ERROR(
      Require(tokens.size() <= kMostTokens, "stop tokens", "at most 128 ids", tokens.size()));
  LATTE_RETURN_IF_ERROR(CheckTokens("stop tokens", tokens));
  LATTE_RETURN_IF_ERROR(
      Require(strings.size() <= kMostStrings, "stop", "at most 16 strings", strings.size()));
  for (const std::string& text : strings)
    LATTE_RETURN_IF_ERROR(Require(!text.empty() && text.size() <= kLongest, "stop",
                                  "strings of 1 to 256 bytes",
                                  fmt::format("one of {}", text.size())));
  for (const std::string& text : strings)
    LATTE_RETURN_IF_ERROR(Require(ValidUtf8Prefix(text) == text.size(), "stop", "UTF-8 text",
                                  "a string that is not"));
  return {};
}

Status Request::Validate() const {
  constexpr int kMostAnswers = 64;
  constexpr int kMostLogprobs = 20;
  LATTE_RETURN_IF_ERROR(CheckTokens("tokens", tokens));
  LATTE_RETURN_IF_ERROR(sampling.Validate());
  LATTE_RETURN_IF_ERROR(stop.Validate());
  LATTE_RETURN_IF_ERROR(Require(n >= 1 && n <= kMostAnswers, "n", "a number in [1, 64]", n));
  LATTE_RETURN_IF_ERROR(Require(logprobs >= -1 && logprobs <= kMostLogprobs, "logprobs",
                                "a number in [0, 20], or -1 for none", logprobs));
  return Require(prompt_logprobs >= -1 && prompt_logprobs <= kMostLogprobs, "prompt_logprobs",
                 "a number in [0, 20], or -1 for none", prompt_logprobs);
}

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

}  // namespace latte
