// Finds a kernel for a shape. Rows are listed by hand in cpu/kernels.cc: no static registration, so
// the list has an order, survives static linking and can be read.
#pragma once

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/check.h"
#include "src/kernels/op.h"

namespace latte {

// Every row of an op, the reference first, then by rising Isa. Specialised in cpu/kernels.cc for
// each op.
template <class Op>
std::span<const Kernel<Op>> Kernels();

// Name and needs of a row, without its types: for listings.
struct KernelInfo {
  std::string_view op;    // "gemm"
  std::string_view name;  // "avx512.gemm"
  Isa isa;
};
std::vector<KernelInfo> AllKernels();

// The present name of a kernel that users may know by an older one ("avx2.linear" → "avx2.gemm");
// any other name as it is. LATTE_KERNEL and --kernel accept both.
std::string CurrentKernelName(std::string_view name);

// The row that runs `shape` on `machine`: a forced row if one supports it, else the last one of the
// list that the machine has and that supports the shape, rows of slow instructions left out. The
// reference supports every shape, so there always is one.
template <class Op>
const Kernel<Op>& Select(const typename Op::Shape& shape, const Machine& machine) {
  const std::span<const Kernel<Op>> rows = Kernels<Op>();
  const Kernel<Op>* chosen = nullptr;
  for (const Kernel<Op>& row : rows) {
    if (!machine.Has(row.isa) || !row.supports(shape)) continue;
    const bool forced = std::find(machine.forced_kernels.begin(), machine.forced_kernels.end(),
                                  row.name) != machine.forced_kernels.end();
    const bool slow =
        machine.slow_bf16_dot && row.bound_by_bf16_dot != nullptr && row.bound_by_bf16_dot(shape);
    if (forced || !slow) chosen = &row;
    if (forced) break;
  }
  LATTE_CHECK(chosen != nullptr, "no kernel supports the shape");
  return *chosen;
}

// Selects and runs; adds what it took to exec.times.
template <class Op>
void Run(const typename Op::Params& params, const Exec& exec) {
  const Kernel<Op>& row = Select<Op>(Op::ShapeOf(params), *exec.machine);
  if (exec.times == nullptr) return row.run(params, exec);
  const auto start = std::chrono::steady_clock::now();
  row.run(params, exec);
  OpUse& use = (*exec.times)[Op::kName];
  use.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if constexpr (requires { Op::WorkOf(params); }) {
    const OpWork work = Op::WorkOf(params);
    use.work.flops += work.flops;
    use.work.bytes += work.bytes;
  }
}

}  // namespace latte
