// How much memory there is for this process.
#pragma once

#include <cstdint>
#include <string>

namespace latte {

// Bytes that can still be taken without swapping: what the system calls available (/proc/meminfo),
// or what the control group of this process leaves (cgroup v2: memory.max less what is in use),
// whichever is less. 0 when neither can be read. `root` replaces "/" in tests.
int64_t AvailableMemory(const std::string& root = "");

}  // namespace latte
