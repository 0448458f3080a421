#include "apps/reserves.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include <sys/resource.h>

#include "src/base/limits/memory.h"
#include "src/base/limits/out_of_memory.h"

namespace latte {
namespace {

constexpr size_t kReserveBytes = size_t{1} << 20;
constexpr rlim_t kStackBytes = rlim_t{512} << 10;  // the stack of a command: twice what the library
                                                   // needs

// A global, because the handler of operator new has no argument.
std::atomic<void*> reserve = nullptr;

void GiveReserveBack() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

[[gnu::noinline]] void TouchStack(rlim_t bytes) {
  constexpr rlim_t kFrame = 16 << 10;
  volatile char frame[kFrame];
  for (rlim_t i = 0; i < kFrame; i += 1024) frame[i] = 0;
  if (bytes > kFrame) TouchStack(bytes - kFrame);
  static_cast<void>(frame[0]);  // after the call, which prevents a tail call
}

}  // namespace

void KeepReserves() {
  reserve = std::malloc(kReserveBytes);
  std::set_new_handler(GiveReserveBack);
  rlimit stack = {};
  if (getrlimit(RLIMIT_STACK, &stack) != 0) return;
  const rlim_t bytes = std::min(kStackBytes, stack.rlim_cur / 2);
  // Reserve can fail without throwing.
  if (!AnonymousMemory::Reserve(static_cast<int64_t>(bytes), PageSize::kUsual))
    throw OutOfMemory(static_cast<int64_t>(bytes), "the stack of the main thread");
  TouchStack(bytes);
}

}  // namespace latte
