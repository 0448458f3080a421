#include "src/api/common/error.h"

#include <algorithm>

#include "src/base/json_out.h"
#include "src/base/strings.h"
#include "src/engine/request/prompt_too_long.h"

namespace latte {
namespace {

bool IsPathChar(char c) { return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '_' || c == '.'; }

// "top_p: expected …" → "top_p"; "body: 'messages.0.role': expected …" → "messages.0.role", which a
// client may have named as it likes.
std::optional<std::string> FieldInMessage(std::string_view message) {
  constexpr std::string_view kBody = "body: '";
  if (message.starts_with(kBody)) {
    message.remove_prefix(kBody.size());
    const size_t end = message.find("':");
    if (end == 0 || end == std::string_view::npos) return std::nullopt;
    return std::string(message.substr(0, end));
  }
  const auto* const end = std::find_if_not(message.begin(), message.end(), IsPathChar);
  const std::string_view field(message.begin(), end);
  if (field.empty() || field == "body" || !message.substr(field.size()).starts_with(':'))
    return std::nullopt;
  return std::string(field);
}

}  // namespace

OpenAiErrorInfo DescribeError(const Error& error) {
  const int status = HttpStatus(error.code);
  OpenAiErrorInfo info{.type = status >= 500   ? "server_error"
                               : status == 429 ? "rate_limit_error"
                                               : "invalid_request_error",
                       .code = CodeName(error.code)};
  if (status < 500) info.param = FieldInMessage(error.message);
  if (error.code == Code::kNotFound && info.param == "model") info.code = "model_not_found";
  if (FindPromptTooLong(error)) info.code = kContextLengthExceeded;
  return info;
}

JsonOut OpenAiError(const Error& error) {
  const OpenAiErrorInfo info = DescribeError(error);
  return {{"error",
           {{"message", error.message},
            {"type", info.type},
            {"param", info.param ? JsonOut(*info.param) : JsonOut(nullptr)},
            {"code", info.code}}}};
}

}  // namespace latte
