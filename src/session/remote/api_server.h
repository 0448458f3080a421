// A server with the OpenAI API, seen from a client.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/http/client/client.h"

namespace latte {

struct ApiAddress {
  std::string url;      // with or without /v1
  std::string api_key;  // empty: none is sent
};

class ApiServer {
 public:
  // Opens no connection. An https server is reached through the proxy of https_proxy, unless
  // no_proxy names it. Errors: of ParseUrl, ProxyFor and HttpClient::Create.
  [[nodiscard]] static Result<ApiServer> Open(const ApiAddress& address, HttpClientOptions options);

  // Requests of an API function such as "/v1/models". Post's body is JSON.
  HttpRequest Get(std::string_view function) const;
  HttpRequest Post(std::string_view function, std::string body) const;

  using Interrupted = std::function<bool()>;  // as Fetch calls it

  // The JSON that a function returns. Errors: of Fetch and Json::Parse; StatusError unless 200.
  [[nodiscard]] Result<Json> GetJson(std::string_view function, Interrupted interrupted = {}) const;
  // The first name of /v1/models. Errors: of GetJson; kCorrupt if there is none.
  [[nodiscard]] Result<std::string> FirstModel(Interrupted interrupted = {}) const;

  HttpClient& client() const { return *client_; }

 private:
  explicit ApiServer(std::unique_ptr<HttpClient> client, std::string api_key)
      : client_(std::move(client)), api_key_(std::move(api_key)) {}
  HttpRequest Request(std::string_view method, std::string_view function) const;

  std::unique_ptr<HttpClient> client_;
  std::string api_key_;
};

// The error of a response with an error status: "HTTP 429: the queue is full". The code
// follows from the status.
Error StatusError(const HttpResponse& response);

// Whether the response is a stream of events, and not one body or an error.
bool IsEventStream(const HttpResponse& response);

// `text` without control characters and with at most `most` bytes, for messages.
std::string OneLine(std::string_view text, size_t most = 300);

}  // namespace latte
