// Turns Ctrl-C into a descriptor to poll and a flag to query.
#pragma once

#include <initializer_list>

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

}  // namespace latte
