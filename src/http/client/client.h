// An HTTP/1.1 client for one server, with one thread: many requests at once, reused connections,
// bodies in pieces as they arrive; TLS and proxies. It follows no redirect.
//
// All functions and callbacks run on the thread that calls Run.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/http/client/proxy.h"
#include "src/http/client/url.h"
#include "src/http/message.h"

namespace latte {

struct HttpClientOptions {
  // PEM file with the certificates to trust, for https:// only; empty: of SSL_CERT_FILE,
  // SSL_CERT_DIR and CURL_CA_BUNDLE, else the system's.
  std::string ca_file = "";
  // A request for an http target names its whole address; an https target is reached by CONNECT.
  std::optional<HttpProxy> proxy = std::nullopt;
  // 0: no limit.
  std::chrono::milliseconds connect_timeout{10'000};  // name, connection, proxy and TLS handshake
  std::chrono::milliseconds first_byte_timeout{0};    // from then to the head of the response
  std::chrono::milliseconds stall_timeout{0};         // without a byte of the body
  std::chrono::milliseconds total_timeout{0};         // from Start to the end of the response
  int64_t max_head_bytes = 64 << 10;  // with the heads of interim responses; of a proxy's, too
  int64_t max_body_bytes = 64 << 20;
  // What messages tell users to do if there is no connection, and if there is no TLS.
  std::string connect_advice = "is the server running?";
  std::string tls_advice =
      "the certificate must be for this host and be trusted: --ca-file names a file of "
      "certificates "
      "to trust";
};

// What kept a response from being complete.
enum class HttpFailure {
  kNone,
  kRequest,      // the request cannot be sent
  kName,         // the host, or its proxy, has no address
  kConnect,      // no connection
  kProxy,        // the proxy refuses
  kTls,          // the server could not prove who it is
  kTimeout,      // one of the timeouts
  kLost,         // the connection ended within the response
  kBadResponse,  // no HTTP, or too large
};
std::string_view HttpFailureName(HttpFailure failure);  // "connection lost"

// The callbacks of one call; an empty function is not called.
struct HttpReceiver {
  std::function<void(const HttpResponse& head)> on_head;  // status and fields; the body is empty
  std::function<void(std::string_view piece)> on_body;
  // Last, once. Errors: kInvalidArgument (kRequest), kCorrupt (kBadResponse), kUnavailable
  // (others), with the address of the server. Any status of the response is a success here.
  std::function<void(Status status, HttpFailure failure)> on_end;
};

struct HttpClientStats {
  int64_t connections = 0;  // opened
  int64_t open_calls = 0;   // now
  int64_t peak_open_calls = 0;
};

class HttpClient {
 public:
  using CallId = uint64_t;

  // Opens no connection. Errors: for https, of LoadAuthorities (certificates.h).
  [[nodiscard]] static Result<std::unique_ptr<HttpClient>> Create(const HttpUrl& url,
                                                                  const HttpClientOptions& options);
  virtual ~HttpClient() = default;

  // Sends method, path, query, fields and body; Host and Content-Length are added. A request that
  // an idle connection did not answer with a single byte is sent again over a new one.
  virtual CallId Start(HttpRequest request, HttpReceiver receiver) = 0;
  // Closes the connection of a call. None of its callbacks is called afterwards. Nothing for a call
  // that is over.
  virtual void Cancel(CallId call) = 0;
  virtual void After(std::chrono::nanoseconds delay, std::function<void()> work) = 0;

  // Until no call and no timer is left, or Stop.
  virtual void Run() = 0;
  // The same, but not longer than `limit`.
  virtual void RunFor(std::chrono::nanoseconds limit) = 0;
  // Run returns after this callback. Another Run continues.
  virtual void Stop() = 0;

  virtual const HttpUrl& url() const = 0;
  virtual HttpClientStats stats() const = 0;
};

// Sends a request and waits for the whole response; calls that were started before go on meanwhile.
// `interrupted` is called every 50 ms; true ends the wait. Errors: of HttpReceiver::on_end;
// kCancelled.
[[nodiscard]] Result<HttpResponse> Fetch(HttpClient& client, HttpRequest request,
                                         std::function<bool()> interrupted = {});

}  // namespace latte
