// The answer to one request, with the header fields of every answer, and its line in the log.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/api/error_body.h"
#include "src/http/server.h"

namespace latte {

// The response to a request that HTTP itself, access or routing refuses.
HttpResponse RefusalResponse(int status, std::string_view message,
                             ErrorForm form = ErrorForm::kOpenAi);

// The response to a request that fails. `retry_after`: seconds, sent with 429 and 503.
HttpResponse ErrorResponse(const Error& error, int retry_after, ErrorForm form,
                           std::string_view request_id);

// On the I/O thread only.
class Reply {
 public:
  // How an answer ended; for log and metrics.
  struct Outcome {
    int status = 0;      // 499: the client left before its answer was complete
    double seconds = 0;  // since the request arrived
  };
  using Ended = std::function<void(const Outcome&)>;

  // `fields` are added to the answer; `form` is that of its errors. `ended` is called once and then
  // released, on the I/O thread. If the reply is released without an answer, on any thread, its
  // connection ends, and that calls `ended`.
  static std::shared_ptr<Reply> Create(std::shared_ptr<HttpExchange> exchange, HttpFields fields,
                                       ErrorForm form, Ended ended);

  void Respond(HttpResponse response);
  void Json(std::string body) { Respond({.body = std::move(body)}); }
  void Fail(const Error& error, int retry_after = 1) {
    Respond(ErrorResponse(error, retry_after, form_, fields_.Find("X-Request-Id")));
  }

  // A stream of server-sent events.
  void BeginEvents();
  void Write(std::string_view events) { exchange_->Write(events); }
  void End();
  bool begun() const { return begun_; }

  // `gone` is called if the client leaves before the answer is complete.
  void OnGone(std::function<void()> gone);

 private:
  // The end of the answer, which is known to the reply, or to the connection if that ends first.
  struct Ending {
    void Finish(int status);

    Ended ended;
    std::chrono::steady_clock::time_point arrived = std::chrono::steady_clock::now();
  };

  Reply(std::shared_ptr<HttpExchange> exchange, HttpFields fields, ErrorForm form, Ended ended);
  void Complete(int status);

  std::shared_ptr<HttpExchange> exchange_;
  HttpFields fields_;
  ErrorForm form_;
  std::shared_ptr<Ending> ending_;
  bool begun_ = false;
};

}  // namespace latte
