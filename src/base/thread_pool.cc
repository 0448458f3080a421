#include "src/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <sched.h>

namespace latte {
namespace {

int UsableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// How often a worker looks for new work before it sleeps: a decode step is a chain of ParallelFor
// calls some microseconds apart, and waking a sleeping thread costs more than most of them.
constexpr int kSpins = 2000;

struct alignas(64) CacheLine {
  std::byte bytes[64];
};

}  // namespace

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable work_ready;
  std::atomic<uint64_t> generation{0};  // counts ParallelFor calls
  std::atomic<int64_t> next{0};
  std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  int64_t count = 0;
  const std::function<void(int64_t)>* task = nullptr;
  std::vector<std::thread> workers;
  std::vector<CacheLine> scratch;

  void Drain() {
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) (*task)(i);
  }

  void Work() {
    uint64_t seen = 0;
    while (true) {
      for (int spin = 0; spin < kSpins && generation.load() == seen && !stop.load(); ++spin)
        __builtin_ia32_pause();
      if (generation.load() == seen) {
        std::unique_lock lock(mutex);
        work_ready.wait(lock, [&] { return generation.load() != seen || stop.load(); });
      }
      if (stop.load()) return;
      seen = generation.load();
      Drain();
      running.fetch_sub(1);
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = UsableProcessors();
  for (int i = 1; i < threads; ++i) state_->workers.emplace_back([this] { state_->Work(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->work_ready.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

std::byte* ThreadPool::Scratch(int64_t bytes) {
  const size_t lines = (static_cast<size_t>(bytes) + sizeof(CacheLine) - 1) / sizeof(CacheLine);
  if (state_->scratch.size() < lines) state_->scratch = std::vector<CacheLine>(lines);
  return state_->scratch.data()->bytes;
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::ParallelFor(int64_t count, const std::function<void(int64_t)>& task) {
  if (count <= 0) return;
  if (count == 1 || state_->workers.empty()) {
    for (int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  state_->count = count;
  state_->task = &task;
  state_->next = 0;
  state_->running = static_cast<int>(state_->workers.size());
  {
    std::lock_guard lock(state_->mutex);
    state_->generation.fetch_add(1);
  }
  state_->work_ready.notify_all();
  state_->Drain();
  // Every worker must have left Drain before the next call may change count and task.
  while (state_->running.load() != 0) {
    for (int spin = 0; spin < 64 && state_->running.load() != 0; ++spin) __builtin_ia32_pause();
    if (state_->running.load() != 0) std::this_thread::yield();
  }
}

}  // namespace latte
