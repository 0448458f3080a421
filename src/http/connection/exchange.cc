#include "src/http/connection/exchange.h"

#include <exception>
#include <utility>

#include "src/http/connection/connection.h"
#include "src/http/io_thread.h"

namespace latte {

Exchange::Exchange(std::weak_ptr<HttpConnection> connection, uint64_t number,
                   std::shared_ptr<IoThread> io)
    : connection_(std::move(connection)), number_(number), io_(std::move(io)) {}

Exchange::~Exchange() {
  if (answered_) return;
  try {
    io_->Post([weak = connection_, number = number_] {
      if (const auto connection = weak.lock()) connection->Abandon(number);
    });
  } catch (const std::exception&) {  // no memory: the client waits until it leaves
  }
}

void Exchange::Respond(HttpResponse response) {
  if (const auto connection = connection_.lock()) connection->Respond(number_, std::move(response));
  answered_ = true;  // not if that lacked memory
}

void Exchange::Begin(HttpResponse head) {
  if (const auto connection = connection_.lock()) connection->Begin(number_, std::move(head));
}

void Exchange::Write(std::string_view piece) {
  if (const auto connection = connection_.lock()) connection->Write(number_, piece);
}

void Exchange::End() {
  if (const auto connection = connection_.lock()) connection->End(number_);
  answered_ = true;
}

void Exchange::OnGone(std::function<void()> gone) {
  if (const auto connection = connection_.lock()) connection->OnGone(number_, std::move(gone));
}

bool Exchange::gone() const {
  const auto connection = connection_.lock();
  return !connection || !connection->IsCurrent(number_);
}

int64_t Exchange::unsent_bytes() const {
  const auto connection = connection_.lock();
  return connection ? connection->unsent_bytes() : 0;
}

}  // namespace latte
