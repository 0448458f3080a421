// Shared by the benches of this folder: ranges of flags, the choice of a kernel, its time compared
// with the ceilings of the same run, and the figures of a record.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/json_out_fwd.h"
#include "src/base/range.h"
#include "src/base/thread_pool.h"
#include "src/jobs/bench/bench_timer.h"
#include "src/jobs/job_progress.h"
#include "src/kernels/registry.h"

namespace latte {

// Options of every bench of a kernel.
struct BenchKernelOptions {
  int threads = 1;     // 1 … 1024
  std::string kernel;  // kernel name; empty: the kernel that the engine would choose
};

struct FlagRange {
  std::string_view flag;
  int64_t value, low, high;
};
// Errors: of FlagInRange for the first flag that is out of range.
[[nodiscard]] Status FlagsInRange(std::initializer_list<FlagRange> flags);

// The threads of a bench and the machine that they run on.
class BenchThreads {
 public:
  BenchThreads(int threads, const Machine& machine) : pool_(threads), exec_{&pool_, &machine} {}
  operator const Exec&() const { return exec_; }

 private:
  ThreadPool pool_;
  Exec exec_;
};

// The kernel of that name, or the fastest one of the group of that name ("avx512.gemm"); empty: the
// kernel that the engine would choose. `what` describes the
// part of the shape that a kernel may not support.
// Errors: kInvalidArgument for a kernel that is unknown, that the machine lacks or that does not
// support the shape.
template <class Op>
Result<const Kernel<Op>*> FindBenchKernel(const std::string& name, const typename Op::Shape& shape,
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

// The steps of MeasureKernel: a trial and the runs.
inline constexpr int kKernelRuns = 9;
inline constexpr int kKernelSteps = 1 + kKernelRuns;

// The work of one call, and what bounds its speed.
struct KernelWork {
  int64_t flops = 0;
  int64_t bytes = 0;
  int64_t unique_bytes = 0;
  Ceiling ceiling = Ceiling::kF32;
  bool reads_memory = false;  // its bytes bound it too, and the rate of memory is sampled
};

struct KernelTimes {
  double seconds = 0;   // of a call: the median of the runs
  double fraction = 0;  // of the bound of `work`: the median of the runs; 0 if it is unknown
  Ceilings ceilings;

  double Gbps(int64_t bytes) const { return static_cast<double>(bytes) * 1e-9 / seconds; }
  // Adds runs, flops, bytes, unique_bytes, us, gflops, peak_gflops.
  void AddTo(const KernelWork& work, JsonOut& record) const;
};

// kKernelRuns runs of at least 20 ms each of call(i), i = 0, 1, 2, …, with a sample of the ceilings
// before each.
KernelTimes MeasureKernel(std::string_view name, const KernelWork& work, const Exec& exec,
                          MeasuredSteps& steps, const std::function<void(int64_t)>& call);

}  // namespace latte
