// ParallelFor over a fixed set of threads. No futures and no queue in the interface.
#pragma once

#include <cstddef>
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

  // At least `bytes` of memory, aligned to 64 bytes, that the caller shares with the tasks of its
  // ParallelFor calls; contents undefined, gone with the next call of Scratch. Grows to the largest
  // request and stays, so that a step allocates nothing that the one before it did not.
  std::byte* Scratch(int64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace latte
