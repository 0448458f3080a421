// Stacks of the size that the library guarantees to need at most (docs/embedding.md): a larger use
// ends the test by SIGSEGV.
#pragma once

#include <cstddef>
#include <thread>

#include <pthread.h>

#include "src/base/check.h"
#include "tests/support/sanitizers.h"

namespace latte::testing_support {

// Gives every thread that starts from now on, including pool workers, 256 KiB of stack. Does
// nothing under sanitizers, whose frames are larger.
inline void UseSmallStacks() {
  if (kUnderAsan || kUnderTsan) return;
  constexpr size_t kStack = 256 << 10;
  constexpr size_t kGuard = 16 << 20;  // below the stack; no frame is larger
  pthread_attr_t attributes;
  LATTE_CHECK(pthread_attr_init(&attributes) == 0);
  LATTE_CHECK(pthread_attr_setstacksize(&attributes, kStack) == 0);
  LATTE_CHECK(pthread_attr_setguardsize(&attributes, kGuard) == 0);
  LATTE_CHECK(pthread_setattr_default_np(&attributes) == 0);
  pthread_attr_destroy(&attributes);
}

template <class F>
void OnSmallStack(const F& f) {
  UseSmallStacks();
  std::thread(f).join();
}

}  // namespace latte::testing_support
