// How deep a recursion may go, by the stack that it takes: the threads that call may have little
// (docs/embedding.md).
#pragma once

#include <cstdint>

namespace latte {

// Half of what a call may need, from where it is made. What is called at the greatest depth comes
// on top. A level takes more with sanitizers, and then there are fewer.
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
