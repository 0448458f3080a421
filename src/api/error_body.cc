#include "src/api/error_body.h"

#include "src/api/common/error.h"
#include "src/api/messages/error.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

std::string_view CodeOfStatus(int status) {
  switch (status) {
    case 401:
      return "invalid_api_key";
    case 403:
      return "forbidden";
    case 404:
      return "not_found";
    case 405:
      return "method_not_allowed";
    case 413:
      return "request_too_large";
    case 415:
      return "unsupported_media_type";
    default:
      return status >= 500 ? "unavailable" : "bad_request";
  }
}

}  // namespace

JsonOut ErrorBody(ErrorForm form, const Error& error, std::string_view request_id) {
  switch (form) {
    case ErrorForm::kOpenAi:
      break;
    case ErrorForm::kAnthropic:
      return AnthropicError(error, request_id);
  }
  return OpenAiError(error);
}

JsonOut RefusalBody(ErrorForm form, int status, std::string_view message) {
  switch (form) {
    case ErrorForm::kOpenAi:
      break;
    case ErrorForm::kAnthropic:
      return AnthropicError(status, message, "");
  }
  return {{"error",
           {{"message", message},
            {"type", status == 401   ? "authentication_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error"},
            {"param", nullptr},
            {"code", CodeOfStatus(status)}}}};
}

}  // namespace latte
