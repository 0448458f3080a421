// The processors that this process may use and their memory nodes, read from /sys/devices/system.
// Reads files and changes only the binding of the calling thread. A machine without these files
// counts as one node of cores with one hardware thread each.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latte {

struct Processor {
  int id = 0;
  int node = 0;     // memory node (NUMA)
  int core = 0;     // the id of the core's first hardware thread
  int sibling = 0;  // 0 for the first hardware thread of a core
};

// The processors of a list such as "0-3,8". Parsing stops at the first malformed item.
std::vector<int> ParseProcessorList(std::string_view text);

// `ids` in placement order: memory nodes in turn, and first hardware threads of cores before second
// ones. `system` is /sys/devices/system or a copy of it.
std::vector<Processor> PlacingOrder(const std::vector<int>& ids, const std::string& system);

// Part `index` of `count` of processors that several processes divide: whole cores, and as few
// memory nodes as possible, so a node each where there are as many. Empty if there are fewer cores
// than parts.
std::vector<int> PartOfProcessors(std::vector<Processor> processors, int index, int count);

// The calling thread's processors in placement order; never empty.
std::vector<Processor> UsableProcessors();

// The number of threads for this many processors: at most `share`, the processor time that the
// control groups allow, rounded up; at least 1. Rounding down would waste a part of the share: of
// 2.5 processors, three threads idle a sixth of the time, but two leave a fifth unused.
int ThreadsFor(int processors, std::optional<double> share);

// The same for this process, with its usable processors and GroupProcessors (control_group.h).
int DefaultThreads();

// Binds the calling thread to these processors. Best effort: if it is not allowed, the thread stays
// unbound, which costs only speed.
void BindThread(const std::vector<int>& ids);

// From now on, memory that this thread and its future threads touch first is spread over all memory
// nodes, page by page. False if the system does not allow it; no effect with one node.
bool InterleaveMemory();

}  // namespace latte
