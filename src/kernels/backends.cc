// The backends of Latte. Nothing else is defined here, so that a program that joins other ones
// links its own definitions instead of this file.
#include "src/kernels/backends.h"

namespace latte {

template <class Op>
std::span<const Kernel<Op>> Kernels() {
  static const auto all = JoinBackends<Op>({cpu::Kernels<Op>(), cuda::Kernels<Op>()});
  return all;
}

extern const AllOps<KernelLists> kKernelLists;
const AllOps<KernelLists> kKernelLists;

}  // namespace latte
