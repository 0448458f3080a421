// Which processors this process may use and on which memory node each lies, as Linux tells it in
// /sys/devices/system. Reads files, changes nothing but the calling thread's binding. A machine
// without these files looks like one node of whole cores.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latte {

struct Processor {
  int id = 0;
  int node = 0;     // memory node (NUMA)
  int sibling = 0;  // 0 for the first hardware thread of a core
};

// The processors of a list such as "0-3,8"; what does not parse ends it.
std::vector<int> ParseProcessorList(std::string_view text);

// `ids` in the order in which threads should take them: nodes in turn, and whole cores before
// second hardware threads. `system` is /sys/devices/system or a copy of it.
std::vector<Processor> PlacingOrder(const std::vector<int>& ids, const std::string& system);

// The calling thread's processors in placing order; never empty.
std::vector<Processor> UsableProcessors();

// Threads that use what this process may use: one per processor, but no more than `share`, the
// control groups' limit of processor time, rounded up. Rounding down would leave a part of the
// share: with 2.5 processors' worth, three threads rest for a sixth of the time, and two leave a
// fifth. At least 1.
int ThreadsFor(int processors, std::optional<double> share);

// The same for this process, with its usable processors and GroupProcessors (control_group.h).
int DefaultThreads();

// Keeps the calling thread on these processors. Best effort: where it is not allowed, threads stay
// where the system puts them, which costs speed and nothing else.
void BindThread(const std::vector<int>& ids);

// Spreads the memory that this thread and those it starts touch first from now on over all memory
// nodes, page by page. False where the system does not allow it; nothing changes on one node.
bool InterleaveMemory();

}  // namespace latte
