#include "src/serve/restarts.h"

#include <algorithm>

namespace latte {
namespace {

constexpr std::chrono::seconds kFirst(1);
constexpr std::chrono::seconds kLongest(60);
constexpr int kMostDoublings = 6;

// What an engine has done, with its steps: engines follow each other, so their times add up.
void AddEngine(const EngineStats& from, EngineStats& to) {
  AddCounters(from, to);
  to.steps += from.steps;
  to.step_seconds += from.step_seconds;
  to.forward_seconds += from.forward_seconds;
}

}  // namespace

std::chrono::milliseconds Restarts::Failed(Clock::time_point now, const EngineStats& last) {
  AddEngine(last, before_);
  ++count_;
  const bool lasted = ready_since_ != Clock::time_point::max() && now - ready_since_ >= kLongest;
  ready_since_ = Clock::time_point::max();
  if (lasted || last.generated_tokens > 0) doublings_ = 0;
  const auto delay = std::min(kLongest, kFirst * (1 << doublings_));
  doublings_ = std::min(doublings_ + 1, kMostDoublings);
  return delay;
}

EngineStats Restarts::Total(const EngineStats& engine) const {
  EngineStats out = engine;
  AddEngine(before_, out);
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
