// ParallelFor over a fixed set of threads. No futures and no queue in the interface.
//
// Hand-over   A call publishes its task and a word that holds its length and the next index;
// whoever
//             adds one to the word owns the index it got. The caller takes part, and does not wait
//             for a worker that is still asleep.
// Waiting     A worker that finds nothing to do spins for some tens of microseconds, since a step
// is
//             a chain of calls a few microseconds apart, and then sleeps in the kernel: an idle
//             pool uses no processor time. A pool with more threads than processors never spins.
// Placing     Nodes take turns (processors.h). A pool that fills the processors of the process
// keeps
//             each worker on one of its own; a smaller one keeps workers to the memory node of
//             their turn, and to nothing on one node: the system knows better which processors are
//             free. The calling thread is never bound. Narrow the process (taskset, cpuset) to pin
//             a smaller pool.
// Memory      is placed by whoever touches it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace latte {

// Splits index ranges over `threads` threads, the caller being one of them. Which thread runs which
// index never changes a result: tasks write to disjoint places. Thread-safe; calls on one pool do
// not share it: a call made while another runs, from one of its tasks or from another thread, runs
// its tasks on its own thread, in order. Pools are independent of each other.
class ThreadPool {
 public:
  // threads: at least 1; 0 means DefaultThreads(). Where the system gives fewer threads, the pool
  // has fewer: threads() tells.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs task(i) for 0 ≤ i < count < 2^31 and returns when all are done. What a task throws is
  // thrown to the caller when no task runs any more; tasks that had not begun are left out.
  template <class F>
  void ParallelFor(int64_t count, const F& task) {
    Run(count, 0,
        {&task, [](const void* f, int64_t i, std::byte*) { (*static_cast<const F*>(f))(i); }});
  }

  // The same with task(i, scratch): at least `bytes` > 0 of memory, aligned to 64 bytes, that no
  // task of another thread has; contents undefined. A call that has the pool takes memory that
  // stays and takes room only where it is touched; one that does not, memory of its own.
  template <class F>
  void ParallelFor(int64_t count, int64_t bytes, const F& task) {
    Run(count, bytes, {&task, [](const void* f, int64_t i, std::byte* scratch) {
                         (*static_cast<const F*>(f))(i, scratch);
                       }});
  }

  // At least `bytes` of memory, aligned to 64 bytes, that the caller shares with the tasks of its
  // ParallelFor calls; contents undefined, gone with the next call of Scratch. Grows to the largest
  // request and stays, so that a step allocates nothing that the one before it did not.
  std::byte* Scratch(int64_t bytes);

 private:
  // A view of the caller's function: cheaper than std::function, and alive as long as the call.
  struct Task {
    const void* function = nullptr;
    void (*call)(const void*, int64_t, std::byte*) = nullptr;
    void operator()(int64_t i, std::byte* scratch) const { call(function, i, scratch); }
  };
  struct State;

  void Run(int64_t count, int64_t scratch_bytes, Task task);

  std::unique_ptr<State> state_;
};

}  // namespace latte
