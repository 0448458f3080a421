// Where other threads leave requests for the engine's thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "src/engine/submission.h"

namespace latte {

// Thread-safe.
class Inbox {
 public:
  Inbox(int64_t max_requests, int64_t max_tokens)
      : max_requests_(max_requests), max_tokens_(max_tokens) {}

  // Gives the request an id. Errors: kExhausted when so many requests or prompt tokens wait.
  [[nodiscard]] Result<RequestId> Put(Submission submission);
  void Cancel(RequestId id);

  struct Mail {
    std::vector<Submission> submissions;  // in the order of their ids
    std::vector<RequestId> cancels;
  };
  Mail Take();

  // A request with so many prompt tokens waits no longer.
  void LeftQueue(int64_t tokens);

  // Ends a Wait that is under way, or else the next one.
  void Wake();

  // Sleeps until there is mail, Wake was called or the time has come; false: the time has come.
  bool Wait(std::chrono::steady_clock::time_point deadline);

 private:
  const int64_t max_requests_;
  const int64_t max_tokens_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Mail mail_;
  RequestId last_id_ = 0;
  int64_t queued_requests_ = 0;
  int64_t queued_tokens_ = 0;
  bool woken_ = false;
};

}  // namespace latte
