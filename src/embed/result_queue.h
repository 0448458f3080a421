// The pending results of a Service.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "latte/request.h"
#include "latte/status.h"

namespace latte {

// One answer from its first token to its end.
struct WholeAnswer {
  int choice = 0;
  std::vector<int32_t> tokens;
  std::string text;
  std::vector<TokenLogprobs> logprobs;  // of `tokens`, if the request wants them
  std::vector<TokenLogprobs> prompt_logprobs;
  TokenEvent end;  // the last event: counts, times, finish, error

  // Takes the next event of the answer. Returns whether it was the last one.
  bool Add(const TokenEvent& event);
};

// A part of what a request of a Service makes.
struct ServiceResult {
  uint64_t id = 0;  // of the request
  uint64_t user_data = 0;
  std::optional<TokenEvent> event = {};
  std::unique_ptr<WholeAnswer> answer = {};
  std::string bytes = {};           // of an answer in the form of the OpenAI API
  bool last = false;                // no other follows with this id
  std::optional<Error> error = {};  // the request failed as a whole
};

// Thread-safe.
class ResultQueue {
 public:
  ResultQueue() = default;
  ~ResultQueue();
  ResultQueue(const ResultQueue&) = delete;
  ResultQueue& operator=(const ResultQueue&) = delete;

  // Adds a result without waking the program.
  void Push(ServiceResult result);
  // Wakes the program if there are results. Called once for the results of a step.
  void Signal();

  // Moves all results out; waits for the first one at most until `deadline`.
  std::vector<ServiceResult> Take(std::chrono::steady_clock::time_point deadline);

  // A file descriptor that poll finds readable while signalled results are here. It lives as long
  // as the queue. Errors: kExhausted if the system gives none.
  [[nodiscard]] Result<int> Descriptor();

 private:
  void Raise();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<ServiceResult> results_;
  bool signalled_ = false;
  int descriptor_ = -1;  // an eventfd; −1: no caller wanted it
};

}  // namespace latte
