// The thread that loads the model and drives the engine.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "latte/engine.h"

namespace latte {

using EngineLoader = std::function<Result<std::unique_ptr<Engine>>()>;

class EngineThread {
 public:
  // All are called on the engine's thread and must not wait.
  struct Hooks {
    std::function<void()> loaded;
    // The events of one step. Call Delivered once they are dealt with.
    std::function<void(std::vector<TokenEvent>)> events;
    // Loading or a step failed; the thread has ended.
    std::function<void(const Error&)> failed;
  };

  EngineThread(EngineLoader load, Hooks hooks);
  // Requires: Stop was called, or the thread has ended.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Null until loaded. Its thread-safe functions may be called.
  Engine* engine() const { return ready_.load(std::memory_order_acquire); }

  // The receiver of events has dealt with one batch. The engine waits for a receiver that is many
  // batches behind. Thread-safe.
  void Delivered();

  // How long the running step has taken; nullopt: none runs. Thread-safe.
  std::optional<std::chrono::nanoseconds> StepAge() const;

  // Ends the loop after the running step, saves prefixes and joins the thread.
  // Errors: of Engine::SavePrefixes.
  [[nodiscard]] Status Stop();

 private:
  void Loop();
  Status Drive();
  void WaitForReceiver();

  EngineLoader load_;
  Hooks hooks_;
  std::unique_ptr<Engine> engine_;
  std::atomic<Engine*> ready_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> undelivered_ = 0;     // batches of events
  std::atomic<int64_t> step_began_ = 0;  // steady clock, ns; 0: no step runs
  Status saved_;
  std::thread thread_;
};

}  // namespace latte
