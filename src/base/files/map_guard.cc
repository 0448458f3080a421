#include "src/base/files/map_guard.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <unistd.h>

namespace latte {
namespace {

// Six times the shards of DeepSeek-V3.
constexpr int kPlaces = 1024;

// A place is free while `message` is null; `begin` and `size` are written before it is not.
struct Place {
  std::atomic<bool> taken;
  std::atomic<uintptr_t> begin;
  std::atomic<size_t> size;
  std::atomic<const char*> message;
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

constinit Place table[kPlaces] = {};
constinit std::atomic<bool> reported = false;

const char* MessageFor(uintptr_t address) {
  for (const Place& place : table) {
    const char* message = place.message.load(std::memory_order_acquire);
    if (message == nullptr) continue;
    if (address - place.begin.load() < place.size.load()) return message;  // wraps below begin
  }
  return nullptr;
}

// Only what POSIX calls async-signal-safe.
void OnBusError(int, siginfo_t* info, void*) {
  const bool is_fault = info->si_code > 0;  // not sent by a program
  const char* message = is_fault ? MessageFor(reinterpret_cast<uintptr_t>(info->si_addr)) : nullptr;
  if (message == nullptr) {
    std::signal(SIGBUS, SIG_DFL);
    std::raise(SIGBUS);
    return;
  }
  while (reported.exchange(true)) pause();  // another thread is already ending the process
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, message, std::strlen(message));
  _exit(1);
}

}  // namespace

void InstallMapGuard() {
  struct sigaction action = {};
  action.sa_sigaction = &OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

int GuardMap(const std::byte* data, size_t size, const char* message) {
  for (int i = 0; i < kPlaces; ++i) {
    Place& place = table[i];
    if (place.taken.exchange(true)) continue;
    place.begin.store(reinterpret_cast<uintptr_t>(data));
    place.size.store(size);
    place.message.store(message, std::memory_order_release);
    return i;
  }
  return -1;
}

void ForgetMap(int place) {
  if (place < 0) return;
  table[place].message.store(nullptr);
  table[place].taken.store(false);
}

}  // namespace latte
