// The kernels of all backends and the test device's, in place of src/kernels/backends.cc. A kernel
// of the test device opens its memory, and runs the kernel that this processor would run.
#include "src/kernels/backends.h"

#include <type_traits>

#include "tests/device/guarded_device.h"
#include "tests/support/step/operands.h"

namespace latte {
namespace {

const Machine& Processor() {
  static const Machine machine = *Machine::Detect();
  return machine;
}

template <class Op>
void RunOnProcessor(const typename Op::Params& params, const Exec& exec) {
  for (const void* address : testing_support::AddressesOf(params))
    LATTE_CHECK(testing_support::TestDevice().Holds(address), "{}: an operand on the host",
                Op::kName);
  const testing_support::GuardedDevice::Access access(testing_support::TestDevice(), exec.stream);
  Run<Op>(params, Exec{.threads = exec.threads, .machine = &Processor()});
}

// Sampling runs on the host.
template <class Op>
constexpr bool kOfSampling = std::is_same_v<typename Op::Shape, LogitShape>;

template <class Op>
std::span<const Kernel<Op>> OnDevice() {
  if constexpr (kOfSampling<Op>) {
    return {};
  } else {
    static constexpr Kernel<Op> kKernel = {
        .name = "test",
        .isa = {IsaFamily::kTest, 0},
        .supports = [](const typename Op::Shape&) { return true; },
        .run = RunOnProcessor<Op>};
    return {&kKernel, 1};
  }
}

}  // namespace

template <class Op>
std::span<const Kernel<Op>> Kernels() {
  static const auto all = JoinBackends<Op>({cpu::Kernels<Op>(), OnDevice<Op>()});
  return all;
}

extern const AllOps<KernelLists> kKernelLists;
const AllOps<KernelLists> kKernelLists;

}  // namespace latte
