// Backends: sets of kernels for one kind of processor. backends.cc joins their lists for Select; a
// program may join others in its place.
#pragma once

#include <initializer_list>
#include <span>
#include <tuple>
#include <vector>

#include "src/kernels/ops.h"
#include "src/kernels/registry.h"

namespace latte {

namespace cpu {
// For x86, the reference first, then by rising Isa; specialised for each op in cpu/tables.
template <class Op>
std::span<const Kernel<Op>> Kernels();
}  // namespace cpu
namespace cuda {
// For GPUs (cuda/tables.cc).
template <class Op>
std::span<const Kernel<Op>> Kernels();
}  // namespace cuda

template <class Op>
std::vector<Kernel<Op>> JoinBackends(std::initializer_list<std::span<const Kernel<Op>>> backends) {
  std::vector<Kernel<Op>> out;
  for (const std::span<const Kernel<Op>>& kernels : backends)
    out.insert(out.end(), kernels.begin(), kernels.end());
  return out;
}

// The joined lists of all ops. The file that defines Kernels defines one object of this type, which
// makes the compiler emit Kernels for every op.
template <class... Ops>
struct KernelLists {
  std::tuple<std::span<const Kernel<Ops>> (*)()...> of{&Kernels<Ops>...};
};

}  // namespace latte
