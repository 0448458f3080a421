// Limits of the control groups of this process, for example of a container. Reads Linux
// cgroups of version 2, version 1 and hybrid layouts. Groups nest, and the limits of outer groups
// apply too; groups above the visible mounts cannot be read. A missing or malformed file means no
// limit. `root` replaces "/" in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace latte {

// Processors that the groups allow: 0.5 for 50 ms of every 100 ms. From cpu.max (v2);
// cpu.cfs_quota_us and cpu.cfs_period_us (v1). None: no limit.
std::optional<double> GroupProcessors(const std::string& root = "");

// Bytes, the minimum over all groups; none: no limit.
struct GroupMemory {
  std::optional<int64_t> limit;
  std::optional<int64_t> left;  // limit minus use; reclaimable file pages do not count as use
};

// From memory.max and memory.high, which throttles a process heavily (v2); memory.limit_in_bytes
// and hierarchical_memory_limit, which includes outer groups that the process cannot see (v1).
GroupMemory ReadGroupMemory(const std::string& root = "");

}  // namespace latte
