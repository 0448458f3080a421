// An HTTP/1.1 server with one I/O thread. It survives any input from clients, enforces every limit
// of HttpServerOptions, and never waits for a client that does not read.
//
// The caller answers requests through HttpHandler. All its functions run on the I/O thread, which
// calls Run; they must not wait. Other threads pass work to it with Post.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/http/message.h"

namespace latte {

struct HttpServerOptions {
  std::string host = "127.0.0.1";    // a name or an address; empty: no TCP socket
  int port = 8000;                   // 0: a free one
  std::string unix_socket = "";      // path of a Unix socket; empty: none
  std::string tls_certificate = "";  // PEM file with the chain; empty: no TLS
  std::string tls_key = "";          // PEM file

  int64_t max_connections = 4096;
  int64_t max_head_bytes = 32 << 10;  // request line and header fields together
  int64_t max_head_fields = 100;
  int64_t max_body_bytes = 32 << 20;
  // The limit for all bodies that are kept, together: those that arrive, and those that the handler
  // still holds (CountedBody). A request beyond it gets 503.
  int64_t max_bodies_bytes = int64_t{1} << 30;
  // Of one connection. A reader of a stream who is further behind is dropped. A whole answer may be
  // longer, but then its reader must take so many bytes in each stall_timeout.
  int64_t max_unsent_bytes = 4 << 20;
  // The limit for all connections together. Above it, the server drops those that wait longest.
  int64_t max_answers_bytes = int64_t{1} << 30;
  std::chrono::milliseconds head_timeout{
      10'000};  // from the first byte (or the TLS handshake's) to the head's end
  std::chrono::milliseconds body_timeout{60'000};   // from the head's end to the body's end
  std::chrono::milliseconds idle_timeout{75'000};   // between two requests of a connection
  std::chrono::milliseconds stall_timeout{30'000};  // a client that takes less than 16 KiB
};

// Counters of the server. A snapshot.
struct HttpServerStats {
  int64_t connections = 0;          // open now
  int64_t accepted = 0;             // since the start
  int64_t refused_connections = 0;  // above max_connections
  int64_t bad_requests = 0;  // answered by the server itself: 400, 408, 413, 414, 431, 501, 505 …
  int64_t dropped_slow = 0;  // stalled or too far behind
  int64_t unsent_bytes = 0;  // of all connections now
  int64_t body_bytes = 0;    // of requests that arrive, or that are kept by the handler
};

// One request and its answer. Use it on the I/O thread only; it may be released on any thread, also
// after the server. When the client leaves, calls do nothing. Released without an answer, it ends
// the connection.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  // Answers with a whole response. Requires: the first answer of this exchange.
  virtual void Respond(HttpResponse response) = 0;

  // Answers with a response in pieces: `head` has its status, type and fields (its body is the
  // first piece). Then any number of Write, then End. HTTP/1.1 clients get chunks; others read
  // until the connection ends.
  virtual void Begin(HttpResponse head) = 0;
  virtual void Write(std::string_view piece) = 0;
  virtual void End() = 0;

  // Called once if the client leaves, stalls or is too far behind before the answer is complete.
  // Replaces the earlier function.
  virtual void OnGone(std::function<void()> gone) = 0;
  virtual bool gone() const = 0;
  virtual int64_t unsent_bytes() const = 0;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  // A head has arrived and is well formed; its body is still to come. A response refuses the
  // request: the body is not read (the connection ends if there is one).
  virtual std::optional<HttpResponse> CheckHead(const HttpRequest& head) = 0;

  // The whole request.
  virtual void Handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) = 0;

  // The body of an answer that the server gives itself, e.g. 408 or 431: `message` is one sentence.
  // The handler chooses the format and may count it. `head`: null unless it is well formed.
  virtual HttpResponse BadRequest(const HttpRequest* head, int status,
                                  std::string_view message) = 0;
};

class HttpServer {
 public:
  // Opens the sockets; connections wait until Run. `handler` must outlive the server.
  // Errors: kInvalidArgument for an address, a certificate or a path that cannot be used;
  // kUnavailable if an address is in use or may not be used.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> Listen(const HttpServerOptions& options,
                                                                  HttpHandler* handler);
  virtual ~HttpServer() = default;

  // Serves until Stop. Lack of memory ends a connection, never the server.
  virtual void Run() = 0;

  // Runs `work` on the I/O thread. Thread-safe. Work that is posted in order runs in order.
  virtual void Post(std::function<void()> work) = 0;
  // Calls `work` on the I/O thread every `period` from now on. Before Run, or on the I/O thread.
  virtual void Repeat(std::chrono::milliseconds period, std::function<void()> work) = 0;
  // Calls `work` on the I/O thread for every signal of `signals`. Before Run.
  virtual void OnSignal(const std::vector<int>& signals, std::function<void(int)> work) = 0;

  // Closes the listening sockets and idle connections; running exchanges go on, and their responses
  // say `Connection: close`. On the I/O thread.
  virtual void StopAccepting() = 0;
  // Ends all connections; Run returns. Thread-safe.
  virtual void Stop() = 0;

  virtual int port() const = 0;  // the one in use; 0 without a TCP socket
  virtual std::vector<std::string> urls()
      const = 0;                              // "http://127.0.0.1:8000", "unix:/run/latte.sock"
  virtual HttpServerStats stats() const = 0;  // on the I/O thread
};

}  // namespace latte
