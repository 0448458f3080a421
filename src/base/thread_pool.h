// clang-format off
// ParallelFor over a fixed set of threads. The interface has no futures and no queue.
//
// Hand-over  A call publishes its task and one atomic word: the number of tasks and the next index.
//            A thread that increments the word owns the index it read. The caller takes part and
//            does not wait for a worker that still sleeps.
// Waiting    An idle worker spins for some tens of microseconds, because the calls of a step follow
//            each other within microseconds. Then it sleeps in the kernel: an idle pool uses no
//            processor time. A pool with more threads than processors never spins.
// Placement  Threads go to the memory nodes in turn (processors.h). A pool with a thread for every
//            processor of the process binds each worker to one processor. A smaller pool binds
//            workers to their memory node, or to nothing if there is one node: the system's
//            scheduler knows which processors are free. The calling thread is never bound. To pin a
//            smaller pool, restrict the process (taskset, cpuset).
// Memory     A page is placed on the node of the thread that first touches it.
// clang-format on
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace latte {

// Splits index ranges over `threads` threads; the caller is one of them. Tasks write to disjoint
// memory, so the result does not depend on which thread runs which index. Thread-safe. Only one
// call at a time uses the workers: a call made meanwhile, from a task or from another thread, runs
// its tasks on the calling thread, in order. Pools are independent of each other.
class ThreadPool {
 public:
  // threads: at least 1; 0 means DefaultThreads(). If the system refuses to create that many
  // threads, the pool has fewer; threads() returns the number.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs task(i) for 0 ≤ i < count < 2^31 and returns when all are done. If a task throws, tasks
  // that have not begun are skipped, and the caller gets the exception when no task runs any more.
  template <class F>
  void ParallelFor(int64_t count, const F& task) {
    Run(count, 0,
        {&task, [](const void* f, int64_t i, std::byte*) { (*static_cast<const F*>(f))(i); }});
  }

  // The same with task(i, scratch). scratch: at least `bytes` > 0 bytes, aligned to 64, not shared
  // with a task of another thread, contents undefined. A call that uses the workers gets memory
  // that the pool keeps, of which only touched pages are resident; another call allocates its own.
  template <class F>
  void ParallelFor(int64_t count, int64_t bytes, const F& task) {
    Run(count, bytes, {&task, [](const void* f, int64_t i, std::byte* scratch) {
                         (*static_cast<const F*>(f))(i, scratch);
                       }});
  }

  // Memory that the caller shares with the tasks of its ParallelFor calls: at least `bytes` bytes,
  // aligned to 64, contents undefined, valid until the next call of Scratch. The buffer grows to
  // the largest request and stays, so repeated steps of the same size allocate nothing.
  std::byte* Scratch(int64_t bytes);

 private:
  // A view of the caller's function, cheaper than std::function. It lives as long as the call.
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
