// Code shared by the benches of one kernel: random operands, the choice of a kernel, and its time
// compared with the ceilings of the same run.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "src/jobs/bench/bench_timer.h"
#include "src/jobs/job_progress.h"
#include "src/kernels/registry.h"
#include "src/tensor/tensor.h"

namespace latte {

inline constexpr int kBenchRuns = 9;

// Fills a contiguous tensor with numbers between −1 and 1 that depend only on the index.
void FillNoise(const TensorView& t);

// The kernel of that name, or the fastest one of the group of that name ("avx512.gemm"); empty: the
// kernel that the engine would choose. `what` describes the
// part of the shape that a kernel may not support.
// Errors: kInvalidArgument for a kernel that is unknown, that the machine lacks or that does not
// support the shape.
template <class Op>
Result<const Kernel<Op>*> FindBenchRow(const std::string& name, const typename Op::Shape& shape,
                                       std::string_view what, const Machine& machine) {
  if (name.empty()) return &Select<Op>(shape, machine);
  const std::string wanted = CurrentKernelName(name);
  const auto is_wanted = [&](const Kernel<Op>& row) {
    return MatchName(wanted, {Op::kName, row.name, row.isa, row.order}) != NameMatch::kNone;
  };
  std::string known;
  const Kernel<Op>* found = nullptr;
  for (const Kernel<Op>& row : Kernels<Op>()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
    if (found == nullptr && is_wanted(row)) found = &row;
  }
  if (found == nullptr)
    return InvalidArgument(fmt::format("--kernel: expected one of {}, found '{}'", known, name));
  if (!machine.Has(found->isa))
    return InvalidArgument(fmt::format("--kernel {}: it needs {}, but the best here is {}", name,
                                       Name(found->isa), Name(machine.isa)));
  Machine forced = machine;
  forced.forced_kernels = {wanted};
  const Kernel<Op>& selected = Select<Op>(shape, forced);
  if (!is_wanted(selected))
    return InvalidArgument(fmt::format("--kernel {}: it does not support {}", name, what));
  return &selected;
}

struct BenchSamples {
  std::vector<double> seconds;   // per call
  std::vector<double> fraction;  // of `ceiling`, run by run; 0 if unknown
  Ceilings ceilings;
};

// The steps of MeasureBench: a trial and the runs.
inline constexpr int kBenchSteps = 1 + kBenchRuns;

// kBenchRuns runs of f() of at least 20 ms each, with a sample of the ceilings before each.
template <class F>
BenchSamples MeasureBench(Ceiling ceiling, double flops, const Exec& exec, MeasuredSteps& steps,
                          const F& f) {
  constexpr double kRunSeconds = 0.02;  // long compared with a clock tick and a wake-up
  f();
  steps.Begin("a trial");
  const double once = SecondsOf(f);
  const auto repeats = static_cast<int>(std::clamp(std::ceil(kRunSeconds / once), 1.0, 1e6));
  BenchSamples out;
  for (int run = 0; run < kBenchRuns; ++run) {
    steps.Begin(fmt::format("run {} of {}", run + 1, kBenchRuns));
    out.ceilings.Sample(exec);
    const double seconds = SecondsOf([&] {
      for (int i = 0; i < repeats; ++i) f();
    });
    out.seconds.push_back(seconds / repeats);
    const double peak = out.ceilings.Last(ceiling);
    out.fraction.push_back(peak > 0 ? flops * 1e-9 / out.seconds.back() / peak : 0.0);
  }
  steps.End();
  return out;
}

}  // namespace latte
