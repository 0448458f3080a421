#include "tests/support/comm/recorded.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/comm/collectives_check.h"
#include "tests/support/comm/threads.h"

namespace latte::recorded_test {
namespace {

using testing_support::CheckCollectives;
using testing_support::CollectiveTrace;
using testing_support::MakeRecorded;
using testing_support::RunRanks;
using testing_support::TraceDifference;

TEST(Recorded, DoesWhatTheInnerOneDoes) {
  RunRanks(3, {}, [](Communicator& world) {
    CollectiveTrace trace;
    CheckCollectives(*MakeRecorded(world, trace));
    EXPECT_GT(trace.size(), 50U);
  });
}

TEST(Recorded, WritesOpGroupColorAndBytes) {
  std::vector<CollectiveTrace> traces(4);
  RunRanks(4, {}, [&](Communicator& inner) {
    const int me = inner.rank();
    const auto world = MakeRecorded(inner, traces[static_cast<size_t>(me)]);
    std::vector<float> x(8);
    world->Barrier();
    const auto rows = world->Split(me / 2, me);
    const auto columns = world->Split(me % 2, me);
    columns->AllReduceSum(x);
    const auto alone = rows->Split(me % 2, 0);
    alone->Broadcast(std::as_writable_bytes(std::span(x)), 0);
  });
  EXPECT_EQ(traces[2], (CollectiveTrace{{"barrier", "world", "", 0},
                                        {"split", "world", "", 0},
                                        {"split", "world", "", 0},
                                        {"all_reduce_sum", "world.1", "0", 32},
                                        {"split", "world.0", "1", 0},
                                        {"broadcast", "world.0.0", "1.0", 32}}));
  for (const CollectiveTrace& trace : traces) EXPECT_EQ(TraceDifference(traces[0], trace), "");
}

TEST(Recorded, DifferencesAreFound) {
  const CollectiveTrace a = {{"barrier", "world", "", 0}, {"all_gather", "world.0", "1", 64}};
  CollectiveTrace b = a;
  EXPECT_EQ(TraceDifference(a, b), "");
  b[1].bytes = 32;
  EXPECT_EQ(
      TraceDifference(a, b),
      "call 1: all_gather of 64 bytes on world.0, and on the other rank all_gather of 32 bytes "
      "on world.0");
  b[1] = {"all_gather", "world.0", "0", 32};  // another group: its ranks have their own tokens
  EXPECT_EQ(TraceDifference(a, b), "");
  b[1] = {"all_to_all", "world.0", "0", 32};
  EXPECT_NE(TraceDifference(a, b), "");
  b.pop_back();
  EXPECT_EQ(TraceDifference(a, b),
            "call 1: all_gather of 64 bytes on world.0, and on the other rank nothing");
  EXPECT_NE(TraceDifference(b, a), "");
}

TEST(Recorded, BytesOfAllToAllMayDiffer) {
  const CollectiveTrace a = {{"all_to_all", "world", "", 64}};
  const CollectiveTrace b = {{"all_to_all", "world", "", 0}};
  EXPECT_EQ(TraceDifference(a, b), "");
}

}  // namespace
}  // namespace latte::recorded_test
