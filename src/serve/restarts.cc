#include "src/serve/restarts.h"

#include <algorithm>

namespace latte {
namespace {

constexpr std::chrono::seconds kFirst(1);
constexpr std::chrono::seconds kLongest(60);
constexpr int kMostDoublings = 6;

void AddCounters(EngineStats& to, const EngineStats& from) {
  to.steps += from.steps;
  to.requests_finished += from.requests_finished;
  to.requests_failed += from.requests_failed;
  to.requests_cancelled += from.requests_cancelled;
  to.preemptions += from.preemptions;
  to.prompt_tokens += from.prompt_tokens;
  to.cached_tokens += from.cached_tokens;
  to.disk_tokens += from.disk_tokens;
  to.computed_tokens += from.computed_tokens;
  to.generated_tokens += from.generated_tokens;
  to.step_seconds += from.step_seconds;
  to.forward_seconds += from.forward_seconds;
  to.drafted_tokens += from.drafted_tokens;
  to.accepted_tokens += from.accepted_tokens;
}

}  // namespace

std::chrono::milliseconds Restarts::Failed(Clock::time_point now, const EngineStats& last) {
  AddCounters(before_, last);
  ++count_;
  const bool lasted = ready_since_ != Clock::time_point::max() && now - ready_since_ >= kLongest;
  ready_since_ = Clock::time_point::max();
  if (lasted) doublings_ = 0;
  const auto delay = std::min(kLongest, kFirst * (1 << doublings_));
  doublings_ = std::min(doublings_ + 1, kMostDoublings);
  return delay;
}

EngineStats Restarts::Total(const EngineStats& engine) const {
  EngineStats out = engine;
  AddCounters(out, before_);
  return out;
}

bool Restarts::Wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return stopped_; });
}

void Restarts::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace latte
