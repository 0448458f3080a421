// Passes requests from other threads to the engine's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "src/engine/request/request_state.h"

namespace latte {

// Requests that wait for their first step.
struct QueueCount {
  int64_t requests = 0;
  int64_t tokens = 0;  // of their prompts
};

// The most that may wait.
struct QueueLimits {
  int64_t requests = 0;
  int64_t tokens = 0;

  // Whether a request with so many prompt tokens may join. Errors: kExhausted.
  [[nodiscard]] Status HasRoom(const QueueCount& queue, int64_t prompt_tokens) const;
};

// The id of a request whose caller has given `id`, which follows `last`. Errors: kInvalidArgument.
[[nodiscard]] Result<RequestId> IdAfter(RequestId last, RequestId id);

// Thread-safe.
class Inbox {
 public:
  explicit Inbox(const QueueLimits& limits) : limits_(limits) {}

  // Gives the request its id. Errors: of IdAfter; kExhausted when too many requests or prompt
  // tokens wait.
  [[nodiscard]] Result<RequestId> Put(std::unique_ptr<RequestState> request);
  void Cancel(RequestId id);

  struct Messages {
    std::vector<std::unique_ptr<RequestState>> requests;  // in the order of their ids
    std::vector<RequestId> cancels;
  };
  Messages Take();

  // A request with so many prompt tokens has left the queue.
  void LeftQueue(int64_t tokens);
  QueueCount queue() const;

  // Ends a Wait that is under way, or else the next one.
  void Wake();

  // Sleeps until there is a message, Wake was called or the time has come; false: the time has
  // come.
  bool Wait(std::chrono::steady_clock::time_point deadline);

 private:
  const QueueLimits limits_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Messages messages_;
  RequestId last_id_ = 0;
  QueueCount queue_;
  bool woken_ = false;
};

}  // namespace latte
