// One request of a connection, and its answer, for a handler. It does not keep the connection
// alive, and may be released on any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "src/http/server.h"

namespace latte {

class HttpConnection;
class IoThread;

class Exchange final : public HttpExchange {
 public:
  // Exchange `number` of `connection`.
  Exchange(std::weak_ptr<HttpConnection> connection, uint64_t number, std::shared_ptr<IoThread> io);
  // An exchange that is released without an answer ends its connection.
  ~Exchange() override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void Respond(HttpResponse response) override;
  void Begin(HttpResponse head) override;
  void Write(std::string_view piece) override;
  void End() override;
  void OnGone(std::function<void()> gone) override;
  bool gone() const override;
  int64_t unsent_bytes() const override;

 private:
  std::weak_ptr<HttpConnection> connection_;  // empty once it is closed
  uint64_t number_;
  std::shared_ptr<IoThread> io_;
  bool answered_ = false;
};

}  // namespace latte
