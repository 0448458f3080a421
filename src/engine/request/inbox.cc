#include "src/engine/request/inbox.h"

#include <utility>

#include <fmt/format.h>

namespace latte {

Status QueueLimits::HasRoom(const QueueCount& queue, int64_t prompt_tokens) const {
  if (queue.requests >= requests)
    return Exhausted(
        fmt::format("{} requests wait, which is the most; try again later", queue.requests));
  // A single prompt is never too long for an empty queue.
  if (queue.requests > 0 && queue.tokens + prompt_tokens > tokens)
    return Exhausted(fmt::format(
        "requests with {} prompt tokens wait, and there is room for {}; try again later",
        queue.tokens, tokens));
  return {};
}

Result<RequestId> IdAfter(RequestId last, RequestId id) {
  if (id == 0) return last + 1;
  if (id > last) return id;
  return InvalidArgument(fmt::format(
      "id of a request: expected more than {}, the last one, or 0 for the next, found {}", last,
      id));
}

Result<RequestId> Inbox::Put(std::unique_ptr<RequestState> request) {
  const int64_t tokens = request->outputs.front()->sequence.length();
  const std::lock_guard lock(mutex_);
  LATTE_RETURN_IF_ERROR(limits_.HasRoom(queue_, tokens));
  LATTE_ASSIGN_OR_RETURN(const RequestId id, IdAfter(last_id_, request->request.id));
  request->id = id;
  messages_.requests.push_back(std::move(request));  // without memory, nothing has changed
  last_id_ = id;
  ++queue_.requests;
  queue_.tokens += tokens;
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
  --queue_.requests;
  queue_.tokens -= tokens;
}

QueueCount Inbox::queue() const {
  const std::lock_guard lock(mutex_);
  return queue_;
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
