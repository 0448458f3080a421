// An HTTP server on a separate thread, with a handler that tests control.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/check.h"
#include "src/http/server.h"

namespace latte::testing_support {

// Paths: /refused is refused by its head; /hold waits for the test (Held); /throw lacks memory;
// /drop is never answered; /large answers with 8 MiB; /none with 204; /known with 304; others
// answer with the request as text. /keep is answered, but the test keeps its body.
class TestHandler final : public HttpHandler {
 public:
  static constexpr size_t kLargeBytes = 8 << 20;

  std::optional<HttpResponse> CheckHead(const HttpRequest& head) override {
    if (head.path == "/refused") return HttpResponse{.status = 403, .body = "refused"};
    return std::nullopt;
  }
  void Handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) override {
    if (request.path == "/throw") throw std::bad_alloc();
    if (request.path == "/drop") return;
    if (request.path == "/large") return exchange->Respond({.body = std::string(kLargeBytes, 'x')});
    if (request.path == "/keep") {
      kept.push_back(request.body);
      return exchange->Respond({.body = "kept"});
    }
    if (request.path == "/known")
      return exchange->Respond({.status = 304, .content_type = "", .body = "not sent"});
    if (request.path == "/none") return exchange->Respond({.status = 204, .content_type = ""});
    if (request.path != "/hold") return exchange->Respond({.body = Text(request)});
    exchange->OnGone([this] {
      const std::lock_guard lock(mutex_);
      ++gone_;
      changed_.notify_all();
    });
    const std::lock_guard lock(mutex_);
    held_.push_back(std::move(exchange));
    changed_.notify_all();
  }
  HttpResponse BadRequest(const HttpRequest* /*head*/, int status,
                          std::string_view message) override {
    return {.status = status, .content_type = "text/plain", .body = std::string(message)};
  }

  static std::string Text(const HttpRequest& request) {
    std::string out = request.method + " " + request.path + "?" + request.query + "\n";
    for (const auto& [name, value] : request.fields.list()) out += name + "=" + value + "\n";
    return out.append(request.body.text());
  }

  // Waits for the next request of /hold. Use the exchange through HttpServerRun::Call.
  std::shared_ptr<HttpExchange> Held() {
    std::unique_lock lock(mutex_);
    Wait(lock, [this] { return !held_.empty(); });
    auto out = std::move(held_.front());
    held_.pop_front();
    return out;
  }
  // Waits until so many exchanges of /hold have lost their client.
  void WaitForGone(int count) {
    std::unique_lock lock(mutex_);
    Wait(lock, [&] { return gone_ >= count; });
  }
  int gone() {
    const std::lock_guard lock(mutex_);
    return gone_;
  }

  std::vector<CountedBody> kept;  // on the I/O thread

 private:
  template <class Condition>
  void Wait(std::unique_lock<std::mutex>& lock, const Condition& condition) {
    const bool done = changed_.wait_for(lock, std::chrono::minutes(1), condition);
    LATTE_CHECK(done, "the server did not tell what the test waits for");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<HttpExchange>> held_;
  int gone_ = 0;
};

class HttpServerRun {
 public:
  // Waits are long, so that only what a test is about ends a connection.
  static HttpServerOptions Patient() {
    HttpServerOptions options;
    options.port = 0;
    options.head_timeout = options.body_timeout = options.idle_timeout = options.stall_timeout =
        std::chrono::minutes(5);
    return options;
  }

  explicit HttpServerRun(const HttpServerOptions& options = Patient()) {
    auto server = HttpServer::Listen(options, &handler);
    LATTE_CHECK(server.has_value(), "{}", server ? "" : ToString(server.error()));
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->Run(); });
  }
  ~HttpServerRun() { Stop(); }

  // Runs `work` on the I/O thread and waits for it.
  void Call(const std::function<void()>& work) {
    std::promise<void> done;
    server_->Post([&] {
      work();
      done.set_value();
    });
    done.get_future().get();
  }
  HttpServerStats stats() {
    HttpServerStats out;
    Call([&] { out = server_->stats(); });
    return out;
  }
  // Waits until `condition` holds for the server's counters.
  template <class Condition>
  void WaitFor(const Condition& condition) {
    for (int i = 0; !condition(stats()); ++i) {
      LATTE_CHECK(i < 6000, "the server did not come to what the test waits for");
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  void Stop() {
    if (!thread_.joinable()) return;
    server_->Stop();
    thread_.join();
  }
  // Also ends the server's objects.
  void Destroy() {
    Stop();
    server_.reset();
  }

  HttpServer& server() { return *server_; }
  int port() const { return server_->port(); }

  TestHandler handler;

 private:
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

}  // namespace latte::testing_support
