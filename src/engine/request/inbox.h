// Where other threads leave requests for the engine's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "src/engine/request/request_state.h"

namespace latte {

// Thread-safe.
class Inbox {
 public:
  Inbox(int64_t max_requests, int64_t max_tokens)
      : max_requests_(max_requests), max_tokens_(max_tokens) {}

  // Gives the request an id. Errors: kExhausted when too many requests or prompt tokens wait.
  [[nodiscard]] Result<RequestId> Put(std::unique_ptr<RequestState> request);
  void Cancel(RequestId id);

  struct Messages {
    std::vector<std::unique_ptr<RequestState>> requests;  // in the order of their ids
    std::vector<RequestId> cancels;
  };
  Messages Take();

  // A request with so many prompt tokens has left the queue.
  void LeftQueue(int64_t tokens);

  // Ends a Wait that is under way, or else the next one.
  void Wake();

  // Sleeps until there is a message, Wake was called or the time has come; false: the time has come.
  bool Wait(std::chrono::steady_clock::time_point deadline);

 private:
  const int64_t max_requests_;
  const int64_t max_tokens_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Messages messages_;
  RequestId last_id_ = 0;
  int64_t queued_requests_ = 0;
  int64_t queued_tokens_ = 0;
  bool woken_ = false;
};

}  // namespace latte
