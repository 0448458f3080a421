// CPU time, memory and files of this process, as Linux reports them.
#pragma once

#include <cstdint>

namespace latte {

// Zero where the system does not tell.
struct ProcessStats {
  double cpu_seconds = 0;  // user and system, of all threads
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t open_files = 0;  // file descriptors
  int64_t max_files = 0;   // the soft limit of them
  double start_time = 0;   // seconds since 1970
};

ProcessStats ReadProcessStats();

}  // namespace latte
