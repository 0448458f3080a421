// The successive engines of one server: the start of the next one, and the sums of their counters.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "latte/engine.h"

namespace latte {

class Restarts {
 public:
  using Clock = std::chrono::steady_clock;

  // The engine has loaded.
  void Ready(Clock::time_point now) { ready_since_ = now; }

  // The engine has failed. `last`: its counters. Returns how long to wait before the next one
  // starts: 1 s, 2 s, 4 s … 60 s, and 1 s again after an engine that was ready for a minute or gave
  // a token.
  std::chrono::milliseconds Failed(Clock::time_point now, const EngineStats& last);

  // How many engines were started again.
  int64_t count() const { return count_; }

  // Adds the counters of the engines before it.
  EngineStats Total(const EngineStats& engine) const;

  // Sleeps; false: Stop was called, before or meanwhile. By any thread, as Stop.
  bool Wait(std::chrono::milliseconds time);
  void Stop();

 private:
  EngineStats before_;  // counters only
  int64_t count_ = 0;
  int doublings_ = 0;
  Clock::time_point ready_since_ = Clock::time_point::max();  // max: not ready

  std::mutex mutex_;  // guards stopped_
  std::condition_variable changed_;
  bool stopped_ = false;
};

}  // namespace latte
