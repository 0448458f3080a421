// Finds the kernel for a shape. The kernels of every op are listed by hand in cpu/kernels.cc; there
// is no static registration, so the list has an order, survives static linking and can be read.
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

// All kernels of an op, the reference first, then by rising Isa. Specialised for each op in
// cpu/kernels.cc.
template <class Op>
std::span<const Kernel<Op>> Kernels();

// Name and instruction set of a kernel, for listings.
struct KernelInfo {
  std::string_view op;    // "gemm"
  std::string_view name;  // "avx512.gemm"
  Isa isa;
};
std::vector<KernelInfo> AllKernels();

// The current name of a kernel given by its current or a former name ("avx2.linear" → "avx2.gemm");
// any other name as it is. LATTE_KERNEL and --kernel accept both.
std::string CurrentKernelName(std::string_view name);

// The kernel that runs `shape` on `machine`: a forced kernel if one supports the shape, else the
// last kernel of the table that the machine can run, that supports the shape and is not slow on this
// micro-architecture. The reference supports every shape, so there always is a kernel.
template <class Op>
const Kernel<Op>& Select(const typename Op::Shape& shape, const Machine& machine) {
  const std::span<const Kernel<Op>> kernels = Kernels<Op>();
  const Kernel<Op>* chosen = nullptr;
  for (const Kernel<Op>& kernel : kernels) {
    if (!machine.Has(kernel.isa) || !kernel.supports(shape)) continue;
    const bool forced = std::find(machine.forced_kernels.begin(), machine.forced_kernels.end(),
                                  kernel.name) != machine.forced_kernels.end();
    const bool slow = kernel.is_slow != nullptr && kernel.is_slow(shape, machine.uarch);
    if (forced || !slow) chosen = &kernel;
    if (forced) break;
  }
  LATTE_CHECK(chosen != nullptr, "no kernel supports the shape");
  return *chosen;
}

// Selects a kernel and runs it. Adds its time and work to exec.times.
template <class Op>
void Run(const typename Op::Params& params, const Exec& exec) {
  const Kernel<Op>& kernel = Select<Op>(Op::ShapeOf(params), *exec.machine);
  if (exec.times == nullptr) return kernel.run(params, exec);
  const auto start = std::chrono::steady_clock::now();
  kernel.run(params, exec);
  OpUse& use = (*exec.times)[Op::kName];
  use.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if constexpr (requires { Op::WorkOf(params); }) {
    const OpWork work = Op::WorkOf(params);
    use.work.flops += work.flops;
    use.work.bytes += work.bytes;
  }
}

}  // namespace latte
