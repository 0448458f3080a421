#include "src/jobs/batch/batch_line.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/answer.h"
#include "src/api/common/json_text.h"
#include "src/api/error_body.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

// Every result line begins with this text, which distinguishes a truncated result from a file of
// another program.
constexpr std::string_view kResultBegin = R"({"id":"batch_req_)";

constexpr auto kMembers = std::to_array<std::string_view>({"custom_id", "method", "url", "body"});

Status CheckMembers(const Json& line) {
  if (!line.is_object()) return InvalidArgument(line.path() + ": expected an object");
  return line.ForEachMember([&](const std::string& name, const Json& value) -> Status {
    if (!line.Find(name)) return {};  // null
    if (std::find(kMembers.begin(), kMembers.end(), name) != kMembers.end()) return {};
    return InvalidArgument(value.path() + ": expected custom_id, method, url and body only");
  });
}

Result<BatchLine> Parse(std::string_view text, const std::string& where) {
  LATTE_ASSIGN_OR_RETURN(const Json line, Json::Parse(text, where));
  LATTE_RETURN_IF_ERROR(CheckMembers(line));
  LATTE_ASSIGN_OR_RETURN(std::string custom_id, line.GetString("custom_id"));
  if (custom_id.empty()) return InvalidArgument(where + ": custom_id: expected text, found none");
  LATTE_ASSIGN_OR_RETURN(const std::string method, line.GetString("method"));
  if (method != "POST")
    return InvalidArgument(fmt::format("{}: method: expected POST, found '{}'", where, method));
  LATTE_ASSIGN_OR_RETURN(const std::string url, line.GetString("url"));
  const std::optional<ApiEndpoint> endpoint = FindEndpoint(url);
  if (!endpoint)
    return InvalidArgument(fmt::format("{}: url: expected {}, {} or {}, found '{}'", where,
                                       Url(ApiEndpoint::kChat), Url(ApiEndpoint::kCompletions),
                                       Url(ApiEndpoint::kResponses), url));
  LATTE_ASSIGN_OR_RETURN(const Json body, line.Get("body"));
  return BatchLine{std::move(custom_id), *endpoint, body};
}

std::string BatchLineText(const BatchLineId& line, int status, std::string_view body,
                          const JsonOut& error) {
  return fmt::format(
      R"({{"id":"batch_req_{}","custom_id":{},"response":{{"status_code":{},"request_id":"req_{}",)"
      R"("body":{}}},"error":{}}})",
      line.number, line.custom_id ? JsonString(*line.custom_id) : "null", status, line.number, body,
      Dump(error));
}

}  // namespace

Result<BatchLine> ParseBatchLine(std::string_view text, const std::string& where) {
  Result<BatchLine> out = Parse(text, where);
  if (!out && out.error().code == Code::kCorrupt) return InvalidArgument(out.error().message);
  return out;
}

std::optional<std::string> FindCustomId(std::string_view text) {
  const Result<Json> line = Json::Parse(text, "");
  if (!line) return std::nullopt;
  Result<std::string> id = line->GetString("custom_id");
  if (!id || id->empty()) return std::nullopt;
  return *std::move(id);
}

std::string BatchResult(const BatchLineId& line, std::string_view body) {
  return BatchLineText(line, HttpStatus(Code::kOk), body, nullptr);
}

std::string BatchFailure(const BatchLineId& line, const Error& error, ApiEndpoint endpoint) {
  const ErrorForm form =
      endpoint == ApiEndpoint::kMessages ? ErrorForm::kAnthropic : ErrorForm::kOpenAi;
  return BatchLineText(line, HttpStatus(error.code),
                       Dump(ErrorBody(form, error, fmt::format("req_{}", line.number))),
                       {{"code", CodeName(error.code)}, {"message", error.message}});
}

Result<BatchOutcome> ParseBatchResult(std::string_view text, const std::string& where) {
  LATTE_ASSIGN_OR_RETURN(const Json line, Json::Parse(text, where));
  LATTE_RETURN_IF_ERROR(line.GetString("id"));
  LATTE_ASSIGN_OR_RETURN(const Json response, line.Get("response"));
  LATTE_ASSIGN_OR_RETURN(const int64_t status, response.GetInt("status_code"));
  BatchOutcome out;
  out.failed = status != HttpStatus(Code::kOk);
  if (const auto id = line.Find("custom_id")) {
    LATTE_ASSIGN_OR_RETURN(out.custom_id, id->AsString());
  }
  if (!out.custom_id && !out.failed) return Corrupt(where + ": key 'custom_id' is missing");
  return out;
}

bool BeginsBatchResult(std::string_view text) {
  return text.substr(0, kResultBegin.size()) == kResultBegin.substr(0, text.size());
}

}  // namespace latte
