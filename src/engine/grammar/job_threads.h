// Threads for jobs that cannot be cancelled: a job that takes too long keeps its thread, and other
// jobs take other threads. The number of threads is bounded.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace latte {

// Thread-safe.
class JobThreads {
 public:
  struct Options {
    size_t threads = 1;
    bool in_background =
        false;  // with a lower priority than the threads that compute, where the system has it
  };

  explicit JobThreads(Options options) : options_(options) {}
  JobThreads(const JobThreads&) = delete;
  JobThreads& operator=(const JobThreads&) = delete;
  // Waits for the jobs that run; drops the others.
  ~JobThreads();

  // Threads begin when they are needed. Runs the job on this thread if there is none.
  void Run(std::function<void()> job);
  size_t waiting() const;

 private:
  void Loop();

  const Options options_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace latte
