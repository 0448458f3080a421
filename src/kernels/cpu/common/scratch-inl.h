// Casts a task's scratch memory to the struct that a kernel works on. Buffers of more than a few
// tens of KiB go there, because callers' threads may have small stacks. A function that
// calls ScratchAs is marked noinline: if it is inlined into a dispatch function, the other cases
// there have fewer registers.
#pragma once

#include <type_traits>

#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

// Contents are undefined.
template <class T>
T& ScratchAs(void* scratch) {
  static_assert(sizeof(T) <= kScratchBytes && alignof(T) <= kScratchAlignment);
  static_assert(std::is_trivially_default_constructible_v<T>, "no constructor runs");
  return *static_cast<T*>(scratch);
}

}  // namespace
}  // namespace latte::cpu
