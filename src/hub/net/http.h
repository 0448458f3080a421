// HTTP for downloads: one request at a time, and no redirect is followed, so that the caller
// decides where a token may go. HttpClients makes the implementation; tests have their own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "latte/status.h"

namespace latte {

struct HubRequest {
  std::string url;                   // http or https, absolute
  std::vector<std::string> headers;  // "Name: value"
};

struct HttpHead {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case; of equal names the last
  std::optional<double> retry_after;           // seconds, from a number or a date
  std::string proxy;  // that the response came through and may be of; empty: none

  // The value of `name`, in lower case; empty if there is none.
  const std::string& Get(const std::string& name) const;
};

// Why a request has no complete response.
struct NetError {
  enum class Kind {
    kName,      // the host has no address
    kConnect,   // no connection
    kProxy,     // the proxy refuses
    kTls,       // the host could not prove who it is
    kBroken,    // the connection broke or the response is no HTTP
    kStalled,   // nothing came for the time limit
    kStopped,   // by the caller
    kRejected,  // by a function of HttpBody
  };
  Kind kind = Kind::kBroken;
  std::string message;  // one line, names the host
};

// Receives a response.
struct HttpBody {
  std::function<bool(const HttpHead&)> begin;             // false: the body is not wanted
  std::function<bool(std::span<const std::byte>)> write;  // false: end the request
};

// One client with its connections. Thread-compatible.
class Http {
 public:
  virtual ~Http() = default;
  // Sends a GET and passes the response on. The head also when `begin` refused its body.
  [[nodiscard]] virtual tl::expected<HttpHead, NetError> Get(const HubRequest& request,
                                                             const HttpBody& body) = 0;
};

// One client per thread.
using HttpFactory = std::function<Result<std::unique_ptr<Http>>()>;

struct HttpSettings {
  double timeout = 30;     // seconds to connect, to the head of a response, and of silence
  std::string user_agent;  // "latte/0.1.0"
  std::string endpoint;    // whose proxy and certificates are checked first
};

// Makes clients over HttpClient, with the proxies and certificates of the environment. They end
// their request when `stop` becomes true, within about 50 ms. `stop` must outlive them. Errors of
// the factory: of ParseWebUrl, ProxyFor and HttpClient::Create.
HttpFactory HttpClients(HttpSettings settings, const std::atomic<bool>& stop);

// The seconds that the value of a field Retry-After asks to wait: a number, or a date of which now
// is `now`, in seconds since 1970. nullopt: it is neither.
std::optional<double> RetryAfter(std::string_view value, int64_t now);

}  // namespace latte
