#include "src/engine/grammar/job_threads.h"

#include <system_error>
#include <utility>

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace latte {
namespace {

constexpr int kBackgroundNiceness = 5;

// On Linux, niceness is a thread's own.
void YieldToOthers() {
#ifdef __linux__
  setpriority(PRIO_PROCESS, 0, kBackgroundNiceness);
#endif
}

}  // namespace

JobThreads::~JobThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JobThreads::Run(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (idle_ <= jobs_.size() && threads_.size() < options_.threads) {
      try {
        threads_.emplace_back([this] { Loop(); });
      } catch (const std::system_error&) {  // no thread is left
      }
    }
    if (!threads_.empty()) jobs_.push_back(std::exchange(job, nullptr));
  }
  if (job) return job();
  changed_.notify_one();
}

size_t JobThreads::waiting() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size();
}

void JobThreads::Loop() {
  if (options_.in_background) YieldToOthers();
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    --idle_;
    if (stopping_) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace latte
