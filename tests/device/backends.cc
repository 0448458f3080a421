// The kernels of all backends and those of the test device, in place of src/kernels/backends.cc. A
// kernel of the test device opens its memory, and runs the kernel that this processor would run.
#include "src/kernels/backends.h"

#include "tests/device/guarded_device.h"

namespace latte {
namespace {

const Machine& Processor() {
  static const Machine machine = *Machine::Detect();
  return machine;
}

template <class Op>
void RunOnProcessor(const typename Op::Params& params, const Exec& exec) {
  const testing_support::GuardedDevice::Access access(testing_support::TestDevice(), exec.stream);
  Run<Op>(params, Exec{.threads = exec.threads, .machine = &Processor()});
}

template <class Op>
constexpr Kernel<Op> kOnDevice[] = {{.name = "test",
                                     .isa = {IsaFamily::kTest, 0},
                                     .supports = [](const typename Op::Shape&) { return true; },
                                     .run = RunOnProcessor<Op>}};

}  // namespace

template <class Op>
std::span<const Kernel<Op>> Kernels() {
  static const auto all = JoinBackends<Op>({cpu::Kernels<Op>(), std::span(kOnDevice<Op>)});
  return all;
}

extern const AllOps<KernelLists> kKernelLists;
const AllOps<KernelLists> kKernelLists;

}  // namespace latte
