#include "lab/bench/bench_pool.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include "lab/bench/harness.h"
#include "src/base/json_out.h"
#include "src/base/limits/processors.h"
#include "src/base/thread_pool.h"

namespace latte {
namespace {

constexpr int kPoolCalls = 20000;
constexpr int kWakes = 200;
constexpr int kCallsPerStep = 1000;
constexpr auto kSleep = std::chrono::milliseconds(2);  // longer than workers spin
constexpr auto kIdle = std::chrono::milliseconds(200);

void Barrier(ThreadPool& pool) {
  const int threads = pool.threads();
  std::atomic<int> begun = 0;
  pool.ParallelFor(threads, [&](int64_t) {
    for (++begun; begun.load() < threads;) __builtin_ia32_pause();
  });
}

int StepsOf(int calls) { return (calls + kCallsPerStep - 1) / kCallsPerStep; }

template <class F>
JsonOut MicrosecondsOf(std::string_view name, int calls, MeasuredSteps& steps, const F& f,
                       bool pause = false) {
  std::vector<double> us;
  for (int i = 0; i < calls; ++i) {
    if (i % kCallsPerStep == 0) {
      steps.Begin(name);
      f();  // what is shown may take long enough for workers to fall asleep
    }
    if (pause) std::this_thread::sleep_for(kSleep);
    us.push_back(SecondsOf(f) * 1e6);
  }
  std::sort(us.begin(), us.end());
  return {{"median_us", Median(us)}, {"p99_us", us[us.size() * 99 / 100]}};
}

double ProcessorSeconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

}  // namespace

Result<JsonOut> BenchPool(int threads, const JobProgress& progress) {
  LATTE_RETURN_IF_ERROR(FlagInRange("--threads", threads, 1, 1024));
  const bool fits = static_cast<size_t>(threads) <= UsableProcessors().size();
  MeasuredSteps steps(progress,
                      StepsOf(kPoolCalls) + (fits ? StepsOf(kPoolCalls) + StepsOf(kWakes) : 0) + 1);
  ThreadPool pool(threads);
  JsonOut record{{"bench", "pool"}, {"threads", threads}, {"calls", kPoolCalls}};
  const auto empty = [&] { pool.ParallelFor(threads, [](int64_t) {}); };
  const auto barrier = [&] { Barrier(pool); };
  record["empty"] = MicrosecondsOf("empty", kPoolCalls, steps, empty);
  record["barrier"] =
      fits ? MicrosecondsOf("barrier", kPoolCalls, steps, barrier) : JsonOut(nullptr);
  record["wake"] =
      fits ? MicrosecondsOf("wake", kWakes, steps, barrier, /*pause=*/true) : JsonOut(nullptr);
  steps.Begin("idle");
  const double before = ProcessorSeconds();
  std::this_thread::sleep_for(kIdle);
  record["idle_processor_share"] =
      (ProcessorSeconds() - before) / std::chrono::duration<double>(kIdle).count();
  steps.End();
  return record;
}

}  // namespace latte
