// The CPU time of a thread, for limits that must not depend on the load of the machine.
#pragma once

#include <ctime>

namespace latte {

// Of this thread. A system call: about 0.3 µs.
inline double ThreadCpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace latte
