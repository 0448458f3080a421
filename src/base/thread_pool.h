// ParallelFor over a fixed set of threads. No futures and no queue in the interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace latte {

// Splits index ranges over `threads` threads, the caller being one of them. Which thread runs which
// index never changes a result: tasks write to disjoint places. Thread-compatible: one ParallelFor
// at a time.
class ThreadPool {
 public:
  // threads: at least 1; 0 means one per processor that this process may use.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs task(i) for 0 ≤ i < count and returns when all are done. `task` must not throw.
  void ParallelFor(int64_t count, const std::function<void(int64_t)>& task);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace latte
