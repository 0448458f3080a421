// A checked longjmp refuses to change to another stack, so this file is compiled on its own and
// without the checks.
#undef _FORTIFY_SOURCE
#include "tests/cuda/emulator/fibers.h"

#include <cstdint>

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define LATTE_FIBERS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LATTE_FIBERS_ASAN 1
#endif
#endif
#ifdef LATTE_FIBERS_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace latte::emulator {
namespace {

constexpr size_t kStackBytes = size_t{128} << 10;
constexpr size_t kGuardBytes = 4096;  // inaccessible, below the stack

// AddressSanitizer wants to know of every change of stack.
#ifdef LATTE_FIBERS_ASAN
void LeaveStack(void** fake, const void* to, size_t bytes) {
  __sanitizer_start_switch_fiber(fake, to, bytes);
}
void EnterStack(void* fake, const void** from, size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake, from, bytes);
}
void ForgetFrames(const void* stack) { __asan_unpoison_memory_region(stack, kStackBytes); }
#else
void LeaveStack(void**, const void*, size_t) {}
void EnterStack(void*, const void**, size_t*) {}
void ForgetFrames(const void*) {}
#endif

}  // namespace

struct Fiber {
  uint8_t* stack = nullptr;
  ucontext_t start;
  jmp_buf resume;
  void* fake = nullptr;  // AddressSanitizer's
  bool begun = false;
};

Fibers::Fibers() : home_(std::make_unique<Fiber>()) {}

Fibers::~Fibers() {
  for (const auto& fiber : fibers_) munmap(fiber->stack - kGuardBytes, kStackBytes + kGuardBytes);
}

Fibers& Fibers::OfThread() {
  static thread_local Fibers fibers;
  return fibers;
}

void Fibers::Prepare(int count, void (*run)()) {
  run_ = run;
  while (fibers_.size() < static_cast<size_t>(count)) {
    void* memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(memory, kGuardBytes, PROT_NONE);
    auto fiber = std::make_unique<Fiber>();
    fiber->stack = static_cast<uint8_t*>(memory) + kGuardBytes;
    fibers_.push_back(std::move(fiber));
    Forget(static_cast<int>(fibers_.size()) - 1);
  }
}

void Fibers::Forget(int index) {
  Fiber& fiber = *fibers_[static_cast<size_t>(index)];
  ForgetFrames(fiber.stack);
  fiber.begun = false;
  fiber.fake = nullptr;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack;
  fiber.start.uc_stack.ss_size = kStackBytes;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, &Fibers::Enter, 0);
}

void Fibers::Arrived(void* fake) {
  const void* from = nullptr;
  size_t bytes = 0;
  EnterStack(fake, &from, &bytes);
  if (!left_home_) return;
  left_home_ = false;
  home_stack_ = from;
  home_stack_bytes_ = bytes;
}

void Fibers::Enter() {
  OfThread().Arrived(nullptr);
  for (;;) OfThread().run_();
}

void Fibers::Jump(int to, void** fake_of_from) {
  Fiber& fiber = *fibers_[static_cast<size_t>(to)];
  LeaveStack(fake_of_from, fiber.stack, kStackBytes);
  if (fiber.begun) _longjmp(fiber.resume, 1);
  fiber.begun = true;
  setcontext(&fiber.start);
}

void Fibers::Run(int first) {
  left_home_ = true;
  if (_setjmp(home_->resume) == 0) Jump(first, &home_->fake);
  EnterStack(home_->fake, nullptr, nullptr);
}

void Fibers::Switch(int from, int to) {
  Fiber& fiber = *fibers_[static_cast<size_t>(from)];
  if (_setjmp(fiber.resume) == 0) Jump(to, &fiber.fake);
  Arrived(fiber.fake);
}

void Fibers::GoHome(int from) {
  Fiber& fiber = *fibers_[static_cast<size_t>(from)];
  if (_setjmp(fiber.resume) == 0) {
    LeaveStack(&fiber.fake, home_stack_, home_stack_bytes_);
    _longjmp(home_->resume, 1);
  }
  Arrived(fiber.fake);
}

}  // namespace latte::emulator
