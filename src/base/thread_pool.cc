#include "src/base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>

#include "src/base/check.h"
#include "src/base/limits/memory.h"
#include "src/base/limits/out_of_memory.h"
#include "src/base/limits/processors.h"
#include "src/base/math.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

// How long an idle worker spins. Waking a sleeping worker takes some tens of microseconds, a
// barrier of spinning threads one or two (`latte bench pool`).
constexpr auto kSpin = std::chrono::microseconds(100);

// Pauses until done() or until kSpin is over; whether done() was seen.
template <class Done>
bool SpinUntil(const Done& done) {
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      __builtin_ia32_pause();
    }
  } while (Clock::now() < end);
  return false;
}

// The processors that worker i is bound to, for each i; empty: any.
std::vector<std::vector<int>> PlaceWorkers(int threads, const std::vector<Processor>& processors) {
  std::vector<std::vector<int>> out(static_cast<size_t>(threads - 1));
  if (static_cast<size_t>(threads) > processors.size()) return out;
  const bool own = static_cast<size_t>(threads) == processors.size();
  const int here = sched_getcpu();  // left to the calling thread
  size_t worker = 0;
  for (const Processor& p : processors) {
    if (p.id == here || worker == out.size()) continue;
    for (const Processor& other : processors)
      if (own ? other.id == p.id : other.node == p.node) out[worker].push_back(other.id);
    ++worker;
  }
  return out;
}

constexpr uint64_t kIndexBits = 32;
constexpr uint64_t kIndexMask = (uint64_t{1} << kIndexBits) - 1;

// Releases the pool.
struct Release {
  std::atomic<bool>& busy;
  ~Release() { busy.store(false, std::memory_order_release); }
};

bool HasWork(uint64_t word) { return (word & kIndexMask) < word >> kIndexBits; }

struct alignas(64) CacheLine {
  std::byte bytes[64];
};

AnonymousMemory Reserve(int64_t bytes) {
  std::optional<AnonymousMemory> memory = AnonymousMemory::Reserve(bytes, PageSize::kUsual);
  if (!memory) throw OutOfMemory(bytes, "the scratch of tasks");
  return *std::move(memory);
}

}  // namespace

struct ThreadPool::State {
  // The number of tasks of the running call, and the next index to take.
  alignas(64) std::atomic<uint64_t> word{0};
  alignas(64) std::atomic<uint32_t> done{0};   // finished tasks of the running call
  alignas(64) std::atomic<uint32_t> calls{0};  // the futex of sleeping workers
  std::atomic<bool> stop{false};
  std::atomic<bool> busy{false};
  Task task;  // written between calls; read by threads that took an index
  bool spin = true;
  std::vector<std::thread> workers;
  std::atomic<bool> failed{false};  // a task of the running call threw
  std::exception_ptr thrown;        // the first exception; written by the thread that set `failed`
  std::vector<CacheLine> scratch;
  // Scratch of tasks: task_bytes for the caller, then for each worker. Written as `task` is.
  std::optional<AnonymousMemory> task_scratch;
  int64_t task_bytes = 0;

  std::byte* TaskScratch(size_t thread) const {
    return task_scratch ? task_scratch->data() + static_cast<int64_t>(thread) * task_bytes
                        : nullptr;
  }

  // Allocated before tasks start. Whole pages, so that each lies on the memory node of its thread.
  void GrowTaskScratch(int64_t bytes) {
    constexpr int64_t kPage = 4096;
    if (bytes <= task_bytes) return;
    task_bytes = 0;
    task_scratch.reset();
    task_scratch = Reserve(RoundUp(bytes, kPage) * static_cast<int64_t>(workers.size() + 1));
    task_bytes = RoundUp(bytes, kPage);
  }

  // Takes indices until none is left. thread: 0 for the caller, i + 1 for worker i.
  void Drain(size_t thread) {
    uint32_t ran = 0;
    while (HasWork(word.load(std::memory_order_relaxed))) {
      const uint64_t taken = word.fetch_add(1, std::memory_order_acq_rel);
      if (!HasWork(taken)) break;
      RunTask(static_cast<int64_t>(taken & kIndexMask), thread);
      ++ran;
    }
    if (ran == 0) return;
    done.fetch_add(ran, std::memory_order_acq_rel);
    done.notify_all();
  }

  // After a task has thrown, the remaining tasks of the call are skipped.
  void RunTask(int64_t index, size_t thread) {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      task(index, TaskScratch(thread));
    } catch (...) {
      if (!failed.exchange(true)) thrown = std::current_exception();
    }
  }

  bool SeesWork() const { return stop.load() || HasWork(word.load(std::memory_order_acquire)); }

  void Work(size_t thread, const std::vector<int>& processors) {
    if (!processors.empty()) BindThread(processors);
    while (!stop.load()) {
      const uint32_t seen = calls.load(std::memory_order_acquire);
      if (!SeesWork() && !(spin && SpinUntil([&] { return SeesWork(); }))) calls.wait(seen);
      Drain(thread);
    }
  }

  // Starts workers until the system refuses one.
  void StartAll(std::span<const std::vector<int>> places) {
    for (const std::vector<int>& place : places)
      if (!Start(place)) return;
  }

  void StopAll() {
    stop = true;
    calls.fetch_add(1);
    calls.notify_all();
    for (std::thread& worker : workers) worker.join();
    workers.clear();
    stop = false;
  }

  // Adds a worker; false if the system gives no more threads, or no stack for one.
  bool Start(const std::vector<int>& place) {
    try {
      workers.emplace_back([this, place, thread = workers.size() + 1] { Work(thread, place); });
      return true;
    } catch (const std::system_error&) {
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  void WaitFor(uint32_t count) {
    const auto finished = [&] { return done.load(std::memory_order_acquire) == count; };
    if (finished() || (spin && SpinUntil(finished))) return;
    for (uint32_t now = done.load(std::memory_order_acquire); now != count;
         now = done.load(std::memory_order_acquire))
      done.wait(now);
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  const std::vector<Processor> processors = UsableProcessors();
  if (threads <= 0) threads = DefaultThreads();
  state_->spin = static_cast<size_t>(threads) <= processors.size();
  const std::vector<std::vector<int>> places = PlaceWorkers(threads, processors);
  state_->StartAll(places);
  if (state_->workers.size() == places.size()) return;
  // If stacks have used up the address space, half of the threads leave room for their work.
  constexpr int64_t kRoom = int64_t{64} << 20;
  if (AnonymousMemory::Reserve(kRoom, PageSize::kUsual)) return;
  const size_t half = state_->workers.size() / 2;
  state_->StopAll();
  state_->StartAll(std::span(places).first(half));
}

ThreadPool::~ThreadPool() { state_->StopAll(); }

std::byte* ThreadPool::Scratch(int64_t bytes) {
  const size_t lines = (static_cast<size_t>(bytes) + sizeof(CacheLine) - 1) / sizeof(CacheLine);
  if (state_->scratch.size() < lines) state_->scratch = std::vector<CacheLine>(lines);
  return state_->scratch.data()->bytes;
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::Run(int64_t count, int64_t scratch_bytes, Task task) {
  if (count <= 0) return;
  LATTE_CHECK(count < int64_t{1} << 31);
  State& s = *state_;
  const auto run_here = [&](std::byte* scratch) {
    for (int64_t i = 0; i < count; ++i) task(i, scratch);
  };
  const bool alone = count == 1 || s.workers.empty();
  if (alone && scratch_bytes == 0) return run_here(nullptr);
  if (s.busy.exchange(true, std::memory_order_acquire)) {
    if (scratch_bytes == 0) return run_here(nullptr);
    return run_here(Reserve(scratch_bytes).data());
  }
  const Release release{s.busy};
  s.GrowTaskScratch(scratch_bytes);
  if (alone) return run_here(s.TaskScratch(0));
  s.task = task;
  s.done.store(0, std::memory_order_relaxed);
  s.word.store(static_cast<uint64_t>(count) << kIndexBits, std::memory_order_release);
  s.calls.fetch_add(1, std::memory_order_release);
  s.calls.notify_all();
  s.Drain(0);
  s.WaitFor(static_cast<uint32_t>(count));
  const std::exception_ptr thrown = std::exchange(s.thrown, nullptr);
  s.failed.store(false, std::memory_order_relaxed);
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace latte
