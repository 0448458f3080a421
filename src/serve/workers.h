// Threads for work that would block the I/O thread: parsing, tokenising, templates.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "latte/status.h"

namespace latte {

// Work for a worker thread, and the call that follows on the thread of Deliver.
struct WorkerJob {
  size_t bytes = 0;                   // of the body; see kLargeBody
  std::function<void()> run;          // on a worker, which destroys it
  std::function<void(Status)> ended;  // of Deliver; an exception of `run` is its error
};

// Jobs with larger bodies run on all threads but one, so that small ones never wait for them.
constexpr size_t kLargeBody = 256 << 10;

// Thread-safe. Jobs begin in the order in which they were posted, but for small ones that pass
// large ones. A job that has not begun when the object ends is dropped.
class Workers {
 public:
  using Ticket = uint64_t;

  // `most_waiting`: jobs that may wait for a thread. `wake`: called on a worker when there is
  // something to deliver. It may throw; then the next Deliver comes later.
  Workers(int threads, size_t most_waiting, std::function<void()> wake);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // nullopt: too much waits already.
  [[nodiscard]] std::optional<Ticket> Post(WorkerJob job);

  // The result is not wanted any more: a job that waits is freed, and `ended` is not called. On the
  // thread of Deliver only.
  void Drop(Ticket ticket);

  // Calls `ended` of all jobs that have run, and destroys them. If it throws, the rest is delivered
  // by the next call.
  void Deliver();

  size_t waiting() const;

 private:
  struct Posted {
    Ticket ticket = 0;
    WorkerJob job;
    Status status;
    bool wanted = true;
  };
  // Jobs move from list to list as nodes, which needs no memory.
  using List = std::list<Posted>;

  bool IsLarge(const Posted& posted) const { return posted.job.bytes > kLargeBody; }
  List::iterator Next();
  void Loop();
  void Wake();
  void Stop();

  const size_t most_waiting_;
  const int most_large_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  List waiting_;
  List running_;
  List done_;
  int large_running_ = 0;
  Ticket last_ticket_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace latte
