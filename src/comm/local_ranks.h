// The processors of a machine, divided among the ranks that run on it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/limits/processors.h"
#include "src/comm/communicator.h"

namespace latte {

// Where a rank runs, as the others get it.
struct RankPlace {
  std::array<char, 64> machine = {};         // name of the running kernel: its boot
  std::array<char, 64> host = {};            // host name; containers of one machine have their own
  std::array<uint64_t, 16> processors = {};  // bit per processor that the rank may use

  static RankPlace OfThisThread();
};

struct ProcessorPart {
  std::vector<int> processors;  // to be bound to; empty: not bound
  int threads = 1;
};

// The part of rank `rank`. all: the places of all ranks. own: the processors that the rank may use
// now. Ranks that may use the same ones divide them (PartOfProcessors), so a launcher that has
// bound each rank by itself is followed. A rank has a thread for each processor of its part, and is
// bound to the memory nodes of its part: within a node, where a thread runs is the system's choice.
// group_share: processor time that the control groups of the rank allow; the ranks of one host
// divide it.
ProcessorPart DivideProcessors(std::span<const RankPlace> all, int rank,
                               const std::vector<Processor>& own,
                               std::optional<double> group_share);

// Every rank of `world` calls it before it starts threads and touches memory: binds the calling
// thread to its part, so that memory which it touches first lies at these processors. Returns the
// number of threads for them. Throws RankLost.
int TakePartOfProcessors(Communicator& world);

}  // namespace latte
