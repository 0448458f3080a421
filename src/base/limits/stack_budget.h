// Limits the depth of a recursion by the stack that it has used, because calling threads may have
// small stacks (docs/embedding.md).
#pragma once

#include <cstdint>

namespace latte {

// Half of the stack that a call may use, from where the object is constructed. Functions called at
// the greatest depth come on top. With sanitizers a level takes more stack, so fewer levels fit.
class StackBudget {
 public:
  bool Left() const { return static_cast<intptr_t>(begin_ - Here()) <= kBytes; }

 private:
  static constexpr intptr_t kBytes = 128 << 10;

  // Stacks grow downwards.
  static uintptr_t Here() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

  uintptr_t begin_ = Here();
};

}  // namespace latte
