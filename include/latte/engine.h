// The engine: many concurrent requests over one model. Its only threads are the kernels' thread
// pool: the caller drives it with Step. Every call needs at most 256 KiB of the calling thread's
// stack, in addition to the needs of the sink.
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
inline namespace v0_2 {

// Counters since creation, and the state after the last step.
struct EngineStats {
  int64_t waiting = 0;  // sequences: requests that were not started, answers that were preempted
  int64_t running = 0;  // sequences: one per answer once its prompt is computed, one before
  int64_t pages_total = 0;
  int64_t pages_used = 0;    // by running sequences
  int64_t pages_cached = 0;  // kept for prefixes alone
  int64_t page_bytes = 0;    // over all streams and layers
  int64_t page_tokens = 0;
  int64_t steps = 0;
  int64_t requests_finished = 0;  // answers, with any finish reason
  int64_t requests_failed = 0;    // of them, answers that ended with an error
  int64_t requests_cancelled = 0;
  int64_t preemptions = 0;
  int64_t prompt_tokens = 0;    // of admitted requests
  int64_t cached_tokens = 0;    // of them, tokens found in the prefix cache
  int64_t disk_tokens = 0;      // of those, tokens read from cache_dir
  int64_t computed_tokens = 0;  // new tokens in all steps
  int64_t generated_tokens = 0;
  double step_seconds = 0;       // spent in Step, without waiting
  double forward_seconds = 0;    // of them, spent in the model
  int64_t drafted_tokens = 0;    // guesses of tokens that steps computed
  int64_t accepted_tokens = 0;   // of them, generated tokens
  int64_t masks = 0;             // of constrained answers' tokens, drafts included
  double mask_seconds = 0;       // spent on masks, next to the model
  double mask_wait_seconds = 0;  // of step_seconds, waiting for masks
  // Groups of ranks: tokens by which groups fall short of the largest group in a step.
  int64_t idle_tokens = 0;
};

// Adds counts of requests, tokens and masks, but not the state after the last step, steps or times.
inline void AddCounters(const EngineStats& from, EngineStats& to) {
  to.requests_finished += from.requests_finished;
  to.requests_failed += from.requests_failed;
  to.requests_cancelled += from.requests_cancelled;
  to.preemptions += from.preemptions;
  to.prompt_tokens += from.prompt_tokens;
  to.cached_tokens += from.cached_tokens;
  to.disk_tokens += from.disk_tokens;
  to.computed_tokens += from.computed_tokens;
  to.generated_tokens += from.generated_tokens;
  to.drafted_tokens += from.drafted_tokens;
  to.accepted_tokens += from.accepted_tokens;
  to.masks += from.masks;
  to.mask_seconds += from.mask_seconds;
  to.mask_wait_seconds += from.mask_wait_seconds;
}

// Submit, Cancel, Wake and Stats are thread-safe; use everything else only from the thread that
// drives the engine. An interface: tests of a program can replace the engine that Create returns.
class Engine {
 public:
  // Loads the model.
  // Errors: of EngineOptions::Validate and of loading; kExhausted if memory or threads run out, or
  // if not even one sequence fits in the cache.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> Create(const EngineOptions& options);
  Engine() = default;
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Puts a request into the queue. The sink receives its events; if another thread drives the
  // engine, the first may arrive before this call returns. Request::user_data identifies them.
  // Returns the id, which is Request::id unless that is 0.
  // Errors: kInvalidArgument for a request that can never be served, or an id that is not greater
  // than all earlier ids; kExhausted if the queue is full or memory runs out.
  [[nodiscard]] virtual Result<RequestId> Submit(Request request) = 0;

  // Ends all answers of a request within one step. Ignores an id that is unknown or done.
  virtual void Cancel(RequestId id) = 0;

  // Called once per step with events, with all of them, on the thread of Step. The events are valid
  // during the call. The sink may call Submit and Cancel.
  using EventSink = std::function<void(std::span<const TokenEvent>)>;
  virtual void SetEventSink(EventSink sink) = 0;

  // Advances every admitted sequence by one step. Never waits: without work it does nothing.
  // A bad request fails alone, through its event. If a step has too little memory, its largest
  // request fails in the same way (kExhausted). Errors: kExhausted if memory runs out elsewhere.
  // Every later Step then fails, too; destroy the engine.
  [[nodiscard]] virtual Status Step() = 0;

  // Sleeps until there may be work for Step, until Wake is called, or until the deadline. Returns
  // false at the deadline.
  virtual bool WaitForWork(std::chrono::steady_clock::time_point deadline) = 0;

  // Ends the current WaitForWork, or the next one if none is running: for a thread that wants the
  // engine's thread to check for work.
  virtual void Wake() = 0;

  // Writes prefixes that are only in memory to cache_dir, and waits until they are written; does
  // nothing without a cache_dir. Errors: kUnavailable if some could not be written.
  [[nodiscard]] virtual Status SavePrefixes() = 0;

  virtual EngineStats Stats() const = 0;

  // The options with all values resolved: lengths, sizes and the number of threads.
  virtual const EngineOptions& options() const = 0;
};

}  // namespace v0_2
}  // namespace latte
