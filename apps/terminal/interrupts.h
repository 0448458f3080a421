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
  // SIGHUP is left alone where it is ignored: whoever said nohup means it.
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

  // Take, and at the first one Release: the work is to end, and a second Ctrl-C ends the program at
  // once. From any thread.
  bool TakeFirst() const;

  // From now on the signals do to the program what they always did.
  void Release() const;

 private:
  int fd_ = -1;
  sigset_t signals_;
};

}  // namespace latte
