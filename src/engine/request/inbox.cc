#include "src/engine/request/inbox.h"

#include <utility>

#include <fmt/format.h>

namespace latte {

Result<RequestId> Inbox::Put(std::unique_ptr<RequestState> request) {
  const int64_t tokens = request->outputs.front()->sequence.length();
  const std::lock_guard lock(mutex_);
  if (queued_requests_ >= max_requests_)
    return Exhausted(
        fmt::format("{} requests wait, which is the most; try again later", queued_requests_));
  // A single prompt is never too long for an empty queue.
  if (queued_requests_ > 0 && queued_tokens_ + tokens > max_tokens_)
    return Exhausted(fmt::format(
        "requests with {} prompt tokens wait, and there is room for {}; try again later",
        queued_tokens_, max_tokens_));
  request->id = last_id_ + 1;
  messages_.requests.push_back(std::move(request));  // without memory, nothing has changed
  ++last_id_;
  ++queued_requests_;
  queued_tokens_ += tokens;
  changed_.notify_all();
  return last_id_;
}

void Inbox::Cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  messages_.cancels.push_back(id);
  changed_.notify_all();
}

Inbox::Messages Inbox::Take() {
  const std::lock_guard lock(mutex_);
  woken_ = false;
  return std::exchange(messages_, {});
}

void Inbox::LeftQueue(int64_t tokens) {
  const std::lock_guard lock(mutex_);
  --queued_requests_;
  queued_tokens_ -= tokens;
}

void Inbox::Wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

bool Inbox::Wait(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] {
    return woken_ || !messages_.requests.empty() || !messages_.cancels.empty();
  });
}

}  // namespace latte
