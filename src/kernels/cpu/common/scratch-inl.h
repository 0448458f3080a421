// A task's scratch as the object that a kernel works on: buffers of more than some tens of KiB lie
// there, since stacks of the threads that call may be small. Functions that take them are not
// inlined, as functions with large frames would not be: beside other cases they cost registers
// (fp8, 8 rows of x: 1.06 of the time).
#pragma once

#include <type_traits>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Nothing in it is set.
template <class T>
T& InScratch(void* scratch) {
  static_assert(sizeof(T) <= kScratchBytes && alignof(T) <= kScratchAlignment);
  static_assert(std::is_trivially_default_constructible_v<T>, "nobody runs its constructor");
  return *static_cast<T*>(scratch);
}

}  // namespace
}  // namespace latte::cpu
