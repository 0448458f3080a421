// What the control groups of this process allow: the limits of a container. Reads Linux cgroups of
// version 2, of version 1, and both side by side. Groups nest, and the limits of outer groups bind
// too; those above the mounts that this process sees cannot be read. A file that is missing or
// makes no sense is no limit. `root` replaces "/" in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace latte {

// Processor time per time that passes: 0.5 where 50 ms of every 100 ms are allowed.
// From cpu.max (v2); cpu.cfs_quota_us and cpu.cfs_period_us (v1). None: no limit.
std::optional<double> GroupProcessors(const std::string& root = "");

// Bytes, each the least of all groups; none: no limit.
struct GroupMemory {
  std::optional<int64_t> limit;
  std::optional<int64_t> left;  // of the limit; file pages that can be dropped are not in use
};

// From memory.max and memory.high, above which a process is slowed down until it crawls (v2);
// memory.limit_in_bytes and hierarchical_memory_limit, which knows outer groups that this process
// does not see (v1).
GroupMemory ReadGroupMemory(const std::string& root = "");

}  // namespace latte
