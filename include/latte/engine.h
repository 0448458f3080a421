// The engine: many requests at once over one model. It owns no thread of its own but the kernels':
// the caller drives it by Step. Every call needs at most 256 KiB of the calling thread's stack; a
// sink's own needs come on top.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "latte/options.h"
#include "latte/request.h"
#include "latte/status.h"

namespace latte {

// Counters since creation, and how things stand after the last step.
struct EngineStats {
  int64_t waiting = 0;  // sequences: requests that were not started, answers that were preempted
  int64_t running = 0;  // sequences: one per answer once its prompt is computed, one before
  int64_t pages_total = 0;
  int64_t pages_used = 0;    // by running sequences
  int64_t pages_cached = 0;  // kept for prefixes alone
  int64_t page_bytes = 0;    // over all streams and layers
  int64_t page_tokens = 0;
  int64_t steps = 0;
  int64_t requests_finished = 0;  // answers, in whatever way
  int64_t requests_failed = 0;    // of them, by an error
  int64_t requests_cancelled = 0;
  int64_t preemptions = 0;
  int64_t prompt_tokens = 0;    // of admitted requests
  int64_t cached_tokens = 0;    // of them, found in the prefix cache
  int64_t disk_tokens = 0;      // of those, read from cache_dir
  int64_t computed_tokens = 0;  // new tokens of all steps
  int64_t generated_tokens = 0;
  double step_seconds = 0;     // in Step, waiting excluded
  double forward_seconds = 0;  // of them, in the model
};

// Submit, Cancel, Wake and Stats are thread-safe; all else is for the one thread that drives the
// engine.
class Engine {
 public:
  // Loads the model. Errors: of EngineOptions::Validate and of loading; kExhausted when memory or
  // threads run out, or when not even one sequence fits the cache.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> Create(const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Puts a request into the queue. What becomes of it is told through the sink.
  // Errors: kInvalidArgument for what can never be served; kExhausted when the queue is full or
  // memory runs out.
  [[nodiscard]] Result<RequestId> Submit(Request request);

  // Ends all answers of a request within one step. An id that is unknown or done is no error.
  void Cancel(RequestId id);

  // Called once per step that made any events, with all of them, on the thread of Step; they are
  // valid during the call. The sink may call Submit and Cancel.
  using EventSink = std::function<void(std::span<const TokenEvent>)>;
  void SetEventSink(EventSink sink);

  // Advances every admitted sequence by one step. Never waits: without work it does nothing.
  // A bad request fails alone, through its event; so does the largest request of a step that there
  // is too little memory for (kExhausted). Errors: kExhausted when memory runs out elsewhere. From
  // then on every Step fails so; destroy the engine.
  [[nodiscard]] Status Step();

  // Sleeps until a Step may find something to do, Wake is called, or the time has come; false: the
  // time has come.
  bool WaitForWork(std::chrono::steady_clock::time_point deadline);

  // Ends the WaitForWork that is under way, or else the next one: for a thread that wants the
  // engine's thread to look around.
  void Wake();

  // Writes prefixes that are only in memory to cache_dir and waits until they are there; without a
  // cache_dir there is nothing to do. Errors: kUnavailable when some could not be written.
  [[nodiscard]] Status SavePrefixes();

  EngineStats Stats() const;

  // What Create settled on: lengths, sizes and the number of threads filled in.
  const EngineOptions& options() const;

  // For the user: why a file of rates ($LATTE_RATES, or that of the cache folder) is left aside.
  // Empty: it is used, or there is none.
  const std::string& rates_warning() const;

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace latte
