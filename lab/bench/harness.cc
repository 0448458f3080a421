#include "lab/bench/harness.h"

#include <algorithm>
#include <cmath>

#include "src/base/json_out.h"

namespace latte {

Status FlagsInRange(std::initializer_list<FlagRange> flags) {
  for (const auto& [flag, value, low, high] : flags)
    LATTE_RETURN_IF_ERROR(FlagInRange(flag, value, low, high));
  return {};
}

void KernelTimes::AddTo(const KernelWork& work, JsonOut& record) const {
  record.update({{"runs", kKernelRuns},
                 {"flops", work.flops},
                 {"bytes", work.bytes},
                 {"unique_bytes", work.unique_bytes},
                 {"us", seconds * 1e6},
                 {"gflops", static_cast<double>(work.flops) * 1e-9 / seconds},
                 {"peak_gflops", OrNull(ceilings.Median(work.ceiling))}});
}

KernelTimes MeasureKernel(std::string_view name, const KernelWork& work, const Exec& exec,
                          MeasuredSteps& steps, const std::function<void(int64_t)>& call) {
  constexpr double kRunSeconds = 0.02;  // long compared with a clock tick and a wake-up
  int64_t calls = 0;
  call(calls++);
  steps.Begin(name);
  const double once = SecondsOf([&] { call(calls++); });
  const auto repeats = static_cast<int>(std::clamp(std::ceil(kRunSeconds / once), 1.0, 1e6));
  KernelTimes out;
  std::vector<double> times, fractions;
  for (int run = 0; run < kKernelRuns; ++run) {
    steps.Begin(name);
    out.ceilings.Sample(exec, work.reads_memory);
    times.push_back(SecondsOf([&] {
                      for (int i = 0; i < repeats; ++i) call(calls++);
                    }) /
                    repeats);
    const double peak = out.ceilings.Last(work.ceiling);
    double bound = peak > 0 ? static_cast<double>(work.flops) * 1e-9 / peak : 0.0;
    if (work.reads_memory)
      bound = std::max(bound,
                       static_cast<double>(work.bytes) * 1e-9 / out.ceilings.Last(Ceiling::kDram));
    fractions.push_back(bound / times.back());
  }
  out.seconds = Median(std::move(times));
  out.fraction = Median(std::move(fractions));
  return out;
}

}  // namespace latte
