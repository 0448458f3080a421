#include "src/session/remote/api_server.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/text/unicode/unicode.h"
#include "src/text/unicode/visible.h"

namespace latte {
namespace {

Code CodeOfStatus(int status) {
  switch (status) {
    case 404:
      return Code::kNotFound;
    case 422:
      return Code::kCorrupt;
    case 429:
      return Code::kExhausted;
    case 499:
      return Code::kCancelled;
    default:
      return status >= 400 && status < 500 ? Code::kInvalidArgument : Code::kUnavailable;
  }
}

// {"error": {"message": …}} as OpenAI, {"error": …} or {"message": …} or {"detail": …} as others.
std::string MessageIn(const std::string& body) {
  const Result<Json> json = Json::Parse(body, "body");
  if (!json) return body;
  for (const std::string_view name : {"error", "message", "detail"}) {
    std::optional<Json> found = json->Find(name);
    if (found && found->is_object()) found = found->Find("message");
    if (!found) continue;
    if (const Result<std::string> text = found->AsString(); text) return *text;
  }
  return body;
}

}  // namespace

std::string OneLine(std::string_view text, size_t most) {
  std::string out;
  for (const char c : text) {
    const bool is_space = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (is_space && (out.empty() || out.back() == ' ')) continue;
    out += is_space ? ' ' : c;
    if (out.size() >= most)
      return VisibleLine(out.substr(0, out.size() - UnfinishedUtf8Suffix(out))) + "…";
  }
  if (out.ends_with(' ')) out.pop_back();
  return VisibleLine(out);
}

Error StatusError(const HttpResponse& response) {
  std::string message = OneLine(MessageIn(response.body));
  if (message.empty()) message = HttpReason(response.status);
  return {CodeOfStatus(response.status), fmt::format("HTTP {}: {}", response.status, message)};
}

bool IsEventStream(const HttpResponse& response) {
  return response.status == 200 && StartsWithNoCase(response.content_type, "text/event-stream");
}

Result<ApiServer> ApiServer::Open(const ApiAddress& address, HttpClientOptions options) {
  LATTE_ASSIGN_OR_RETURN(const HttpUrl url, ParseUrl(address.url));
  // A server without TLS is one of this network, where a proxy does not lead.
  if (url.scheme == HttpUrl::Scheme::kHttps) {
    LATTE_ASSIGN_OR_RETURN(options.proxy, ProxyFor(url, ReadProxyVariables()));
  }
  LATTE_ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> client, HttpClient::Create(url, options));
  return ApiServer(std::move(client), address.api_key);
}

HttpRequest ApiServer::Request(std::string_view method, std::string_view function) const {
  HttpRequest out;
  out.method = method;
  out.path = ApiPath(client_->url(), function);
  out.fields.Add("User-Agent", "latte");
  out.fields.Add("Accept-Encoding", "identity");
  if (!api_key_.empty()) out.fields.Add("Authorization", "Bearer " + api_key_);
  return out;
}

HttpRequest ApiServer::Get(std::string_view function) const { return Request("GET", function); }

HttpRequest ApiServer::Post(std::string_view function, std::string body) const {
  HttpRequest out = Request("POST", function);
  out.fields.Add("Content-Type", "application/json");
  out.body = std::move(body);
  return out;
}

Result<Json> ApiServer::GetJson(std::string_view function, Interrupted interrupted) const {
  LATTE_ASSIGN_OR_RETURN(const HttpResponse response,
                         Fetch(*client_, Get(function), std::move(interrupted)));
  const std::string where = client_->url().Origin() + ApiPath(client_->url(), function);
  if (response.status != 200) {
    Error error = StatusError(response);
    error.message = where + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  return Json::Parse(response.body, where);
}

Result<std::string> ApiServer::FirstModel(Interrupted interrupted) const {
  LATTE_ASSIGN_OR_RETURN(const Json models, GetJson("/v1/models", std::move(interrupted)));
  LATTE_ASSIGN_OR_RETURN(const Json list, models.Get("data"));
  if (!list.is_array() || list.size() == 0)
    return Corrupt(
        fmt::format("{}: expected at least one model; name one with --model", list.path()));
  return list.At(0).GetString("id");
}

}  // namespace latte
