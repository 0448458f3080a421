#include "src/jobs/bench_timer.h"

#include <algorithm>
#include <atomic>

#include "src/base/check.h"
#include "src/kernels/cpu/peak.h"

namespace latte {

double Median(std::vector<double> values) {
  LATTE_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double MeasurePeak(DType arithmetic, const Exec& exec) {
  constexpr int64_t kRounds = 1 << 18;  // 2 ms at 4 GHz
  std::atomic<int64_t> flops = 0;
  const double seconds = SecondsOf([&] {
    exec.threads->ParallelFor(exec.threads->threads(), [&](int64_t) {
      flops += cpu::RunPeak(*exec.machine, arithmetic, kRounds);
    });
  });
  return static_cast<double>(flops) / seconds * 1e-9;
}

}  // namespace latte
