// Turns Ctrl-C into a descriptor to poll and a flag to query.
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>
#include <thread>

#include <signal.h>

#include "latte/status.h"

namespace latte {

// Signals that end an answer or a step instead of the program. They are blocked and read from a
// descriptor, so no handler and no global are needed, and no signal is lost between a query and a
// wait. Thread-compatible.
class Interrupts {
 public:
  // Does not catch SIGHUP if it is ignored (nohup). Threads that must not receive the signals
  // themselves must start after this call.
  // Errors: kUnavailable.
  static Result<Interrupts> Catch(std::initializer_list<int> signals);
  Interrupts();  // catches nothing
  Interrupts(Interrupts&& other) noexcept;
  Interrupts& operator=(Interrupts&& other) noexcept;
  ~Interrupts();

  int fd() const { return fd_; }  // readable if a signal has arrived; -1: never

  // Whether a signal has arrived since the last call.
  bool Take() const { return TakeSignal() != 0; }
  int TakeSignal() const;  // which one; 0: none

  // As Take, and the first signal calls Release: the work should end, and a second Ctrl-C ends the
  // program at once. May be called from any thread.
  bool TakeFirst() const;

  // Restores the default action of the signals.
  void Release() const;

 private:
  int fd_ = -1;
  sigset_t signals_;
};

// Shown meanwhile.
inline constexpr std::string_view kStopping = "[stopping …]";

// Calls a function once, from a thread of its own, when a signal has waited for half a second: a
// step takes long, and the user should see that Ctrl-C has arrived. Takes no signal.
class LateInterrupt {
 public:
  // `interrupts` must outlive this object.
  LateInterrupt(const Interrupts& interrupts, std::function<void()> on_late);
  ~LateInterrupt();
  LateInterrupt(const LateInterrupt&) = delete;
  LateInterrupt& operator=(const LateInterrupt&) = delete;

 private:
  void Watch(int interrupts_fd, const std::function<void()>& on_late) const;

  int end_fd_ = -1;  // readable when the watch should end
  std::thread watch_;
};

}  // namespace latte
