// A communicator that records its collectives: tests compare the records of all ranks, because a
// rank that skips a call or makes a different one hangs the other ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/comm/communicator.h"

namespace latte::testing_support {

struct CollectiveRecord {
  std::string op;     // "all_reduce_sum"
  std::string group;  // "world"; its second Split: "world.1"; the first Split of that: "world.1.0"
  std::string color;  // the colors of these Splits: "3.0"; ranks of one group have the same
  int64_t bytes = 0;  // of the result, or of the operand of reduce_scatter_sum; of all_to_all what
                      // this rank sends, itself included; 0: barrier, split
  bool operator==(const CollectiveRecord&) const = default;
};
using CollectiveTrace = std::vector<CollectiveRecord>;

// Appends every collective of `inner`, and of the groups split from it, to `trace`, before it
// begins. inner, trace: outlive the result and its parts.
std::unique_ptr<Communicator> MakeRecorded(Communicator& inner, CollectiveTrace& trace);

// Where the collectives of two ranks differ, in one line; empty if they agree: the same ops on the
// same groups in the same order, and the same bytes where both are in one group, except for
// all_to_all.
std::string TraceDifference(const CollectiveTrace& a, const CollectiveTrace& b);

}  // namespace latte::testing_support
