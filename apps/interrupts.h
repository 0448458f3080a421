// Ctrl-C as something to ask for and to wait for.
#pragma once

#include <initializer_list>

#include <signal.h>

#include "latte/status.h"

namespace latte {

// Signals that are to end an answer or a step and not the program. They are blocked and read from
// a descriptor: without a handler there is no global for it to set, and none can be missed between
// a look and a wait. Thread-compatible.
class Interrupts {
 public:
  // Threads that are to leave the signals to this object must be started after it.
  // Errors: kUnavailable.
  static Result<Interrupts> Catch(std::initializer_list<int> signals);
  Interrupts();  // catches nothing
  Interrupts(Interrupts&& other) noexcept;
  Interrupts& operator=(Interrupts&& other) noexcept;
  ~Interrupts();

  int fd() const { return fd_; }  // readable when one came; -1: never

  // Whether one came since the last call.
  bool Take() const;

  // From now on the signals do to the program what they always did. For the thread that called
  // Catch.
  void Release() const;

 private:
  int fd_ = -1;
  sigset_t signals_;
};

}  // namespace latte
