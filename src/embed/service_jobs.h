// The running requests of a Service, and the destinations of their results.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "latte/engine.h"

#include "src/api/running.h"
#include "src/embed/result_queue.h"

namespace latte {

// One request of the program. Its kind follows from the members that are set.
struct ServiceJob {
  std::shared_ptr<ResultQueue> queue;
  uint64_t user_data = 0;
  // For a prompt whose events or whole answers go to the queue.
  int open = 0;  // answers that have not ended
  bool whole = false;
  std::vector<WholeAnswer> answers = {};  // of `whole`, by choice
  // For a body of the OpenAI API.
  std::optional<ApiRunning> running = {};
  // For a given sequence whose logits are wanted.
  std::vector<int32_t> tokens = {};
  int64_t first = 0;             // the first token with a row in `logits`
  std::span<float> logits = {};  // [tokens − first, vocab]
  std::atomic<bool> stop = false;

  uint64_t id = 0;                       // set by ServiceJobs
  std::vector<uint64_t> keys = {};       // user_data of its requests of the engine
  std::vector<RequestId> requests = {};  // of the engine
};

// Thread-safe.
class ServiceJobs {
 public:
  // Takes a job with `prompts` requests of the engine, and sets its id and keys.
  // Errors: the error of Close.
  [[nodiscard]] Status Add(const std::shared_ptr<ServiceJob>& job, size_t prompts);

  // The engine has a request of the job. False: the job has ended or is cancelled, so the request
  // is to be cancelled too.
  [[nodiscard]] bool Submitted(ServiceJob& job, RequestId request);

  // Passes the events of a step on. Returns the engine's requests that no job needs any more.
  std::vector<RequestId> Deliver(std::span<const TokenEvent> events);

  // Ends a job without a word: its caller gets the error.
  std::vector<RequestId> Drop(const ServiceJob& job);

  // Ends a job that is over, or has failed. Does nothing if it has ended.
  void Finish(const ServiceJob& job, const Status& status);

  // Cancels a job. Returns the engine's requests to cancel. Ignores an id that is unknown.
  std::vector<RequestId> Cancel(uint64_t id);

  // Ends all jobs with `error`, and refuses others with it. The first call counts.
  void Close(const Error& error);

 private:
  struct Place {
    std::shared_ptr<ServiceJob> job;
    size_t prompt = 0;
  };

  void DeliverOne(const Place& place, const TokenEvent& event, std::vector<RequestId>* unneeded);
  void AddToAnswer(const Place& place, const TokenEvent& event, std::vector<RequestId>* unneeded);
  void AddPlain(ServiceJob& job, const TokenEvent& event);
  void Push(ServiceJob& job, ServiceResult result);
  void Forget(const ServiceJob& job);

  std::mutex mutex_;
  uint64_t next_id_ = 1;
  uint64_t next_key_ = 1;
  std::unordered_map<uint64_t, std::shared_ptr<ServiceJob>> jobs_;  // by id
  std::unordered_map<uint64_t, Place> places_;                      // by key
  std::optional<Error> closed_;
};

}  // namespace latte
