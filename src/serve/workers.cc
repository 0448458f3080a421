#include "src/serve/workers.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "src/base/limits/out_of_memory.h"

namespace latte {
namespace {

Status RunGuarded(const std::function<void()>& run) {
  try {
    run();
    return {};
  } catch (const std::exception& thrown) {
    return tl::unexpected<Error>(ErrorOf(thrown));
  }
}

}  // namespace

Workers::Workers(int threads, size_t most_waiting, std::function<void()> wake)
    : most_waiting_(most_waiting), most_large_(std::max(threads - 1, 1)), wake_(std::move(wake)) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  } catch (...) {  // no more threads: those that run must be joined before they are destroyed
    Stop();
    throw;
  }
}

Workers::~Workers() { Stop(); }

void Workers::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::optional<Workers::Ticket> Workers::Post(WorkerJob job) {
  List node;
  node.push_back({.job = std::move(job)});
  const std::lock_guard lock(mutex_);
  if (waiting_.size() >= most_waiting_) return std::nullopt;
  node.front().ticket = ++last_ticket_;
  waiting_.splice(waiting_.end(), node);
  changed_.notify_one();
  return last_ticket_;
}

void Workers::Drop(Ticket ticket) {
  List dropped;  // destroyed after the lock is released: it may hold a large body
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const Posted& posted) { return posted.ticket == ticket; };
  for (List* list : {&waiting_, &done_}) {
    const auto found = std::find_if(list->begin(), list->end(), is_it);
    if (found != list->end()) return dropped.splice(dropped.end(), *list, found);
  }
  const auto found = std::find_if(running_.begin(), running_.end(), is_it);
  if (found != running_.end()) found->wanted = false;
}

void Workers::Deliver() {
  while (true) {
    List one;
    {
      const std::lock_guard lock(mutex_);
      if (done_.empty()) return;
      one.splice(one.end(), done_, done_.begin());
    }
    if (one.front().wanted) one.front().job.ended(std::move(one.front().status));
  }
}

size_t Workers::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

// The first that may begin.
Workers::List::iterator Workers::Next() {
  return std::find_if(waiting_.begin(), waiting_.end(), [this](const Posted& posted) {
    return !IsLarge(posted) || large_running_ < most_large_;
  });
}

void Workers::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    auto mine = waiting_.end();
    changed_.wait(lock, [&] { return stopping_ || (mine = Next()) != waiting_.end(); });
    if (stopping_) return;
    const int large = IsLarge(*mine) ? 1 : 0;
    large_running_ += large;
    running_.splice(running_.end(), waiting_, mine);
    lock.unlock();
    mine->status = RunGuarded(mine->job.run);
    mine->job.run = {};  // with the body
    lock.lock();
    large_running_ -= large;
    done_.splice(done_.end(), running_, mine);
    lock.unlock();
    Wake();
    lock.lock();
  }
}

void Workers::Wake() {
  try {
    wake_();
  } catch (const std::exception&) {  // no memory: a later Deliver finds the job
  }
}

}  // namespace latte
