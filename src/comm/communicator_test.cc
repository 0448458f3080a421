#include "src/comm/communicator.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/comm/collectives_check.h"
#include "tests/support/comm/threads.h"
#include "tests/support/parameter_name.h"

namespace latte::communicator_test {
namespace {

using testing_support::CheckCollectives;
using testing_support::RunRanks;

using std::chrono::milliseconds;

constexpr CommOptions kLong;                     // a test that waits for it hangs
constexpr CommOptions kShort{milliseconds(50)};  // a test waits for it, and for nothing else

class ThreadRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadRanks, testing::Values(1, 2, 3, 4, 5),
                         testing_support::ParameterName());

TEST_P(ThreadRanks, Collectives) { RunRanks(GetParam(), kLong, CheckCollectives); }

// The rank that is lost, as each rank learns it; -2: not at all.
std::vector<int> LostRanks(int size, const CommOptions& options,
                           const std::function<void(Communicator& world)>& body) {
  std::vector<int> lost(static_cast<size_t>(size), -2);
  try {
    RunRanks(size, options, [&](Communicator& world) {
      try {
        body(world);
      } catch (const RankLost& error) {
        lost[static_cast<size_t>(world.rank())] = error.rank();
        throw;
      }
    });
  } catch (const std::exception&) {
  }
  return lost;
}

TEST(LostRank, OneThatThrowsIsNamedToAllAndItsExceptionIsTheResult) {
  const auto body = [](Communicator& world) {
    world.Barrier();
    if (world.rank() == 2) throw std::invalid_argument("no such weight");
    world.Barrier();
  };
  EXPECT_EQ(LostRanks(4, kLong, body), (std::vector<int>{2, 2, -2, 2}));
  EXPECT_THROW(RunRanks(4, kLong, body), std::invalid_argument);
}

TEST(LostRank, OneThatEndsWhileOthersWaitIsNamed) {
  EXPECT_EQ(LostRanks(3, kLong,
                      [](Communicator& world) {
                        if (world.rank() != 1) world.Barrier();
                      }),
            (std::vector<int>{1, -2, 1}));
}

TEST(LostRank, MessagesOfOneThatHasEndedStillArrive) {
  std::atomic<bool> ended = false;
  RunRanks(2, kLong, [&](Communicator& world) {
    std::vector<std::byte> data(1, std::byte{7});
    if (world.rank() == 0) {
      world.Broadcast(data, 0);
      ended = true;
    } else {
      data[0] = {};
      while (!ended) std::this_thread::yield();
      world.Broadcast(data, 0);
      EXPECT_EQ(data[0], std::byte{7});
    }
  });
}

TEST(LostRank, OneThatIsSilentIsNamedAfterTheDeadline) {
  std::atomic<int> waiting = 2;
  EXPECT_EQ(
      LostRanks(
          3, kShort,
          [&](Communicator& world) {
            if (world.rank() == 1) {
              while (waiting > 0) std::this_thread::yield();
              world.Barrier();  // too late: the group is lost
            }
            try {
              world.Barrier();
            } catch (const RankLost& error) {
              EXPECT_NE(std::string(error.what()).find("barrier of 3 ranks"), std::string::npos)
                  << error.what();
              --waiting;
              throw;
            }
          }),
      (std::vector<int>{1, 1, 1}));
}

TEST(LostRank, PartsNameRanksOfTheWorld) {
  EXPECT_EQ(LostRanks(4, kShort,
                      [](Communicator& world) {
                        const auto part = world.Split(world.rank() / 2, 0);
                        if (world.rank() == 3) throw std::runtime_error("dead");
                        for (;;) part->Barrier();
                      }),
            (std::vector<int>{3, 3, 3, -2}));
}

TEST(LostRank, AbandonEndsTheWaitAndAllLaterCalls) {
  EXPECT_EQ(LostRanks(2, kLong,
                      [](Communicator& world) {
                        if (world.rank() == 1) {
                          world.Abandon({1, "rank 1 gives up"});
                          world.Abandon({0, "too late"});
                        }
                        try {
                          world.Barrier();
                        } catch (const RankLost& error) {
                          EXPECT_EQ(error.rank(), 1);
                        }
                        const auto part = world.Split(0, 0);
                      }),
            (std::vector<int>{1, 1}));
  EXPECT_EQ(LostRanks(1, kLong,
                      [](Communicator& alone) {
                        alone.Abandon({0, "the front has ended"});
                        alone.Barrier();
                      }),
            (std::vector<int>{0}));
}

TEST(LostRank, OneThatThrowsEndsGroupsThatItIsNotIn) {
  EXPECT_EQ(LostRanks(3, kLong,
                      [](Communicator& world) {
                        const auto part = world.Split(world.rank() == 1 ? 1 : 0, 0);
                        if (world.rank() == 1) throw std::runtime_error("dead");
                        for (;;) part->Barrier();
                      }),
            (std::vector<int>{1, -2, 1}));
}

// Rank 0 sends `sent` bytes, and the others expect another number.
void SendLength(Communicator& world, size_t sent, size_t expected) {
  std::vector<std::byte> data(world.rank() == 0 ? sent : expected);
  world.Broadcast(data, 0);
}

TEST(LostRank, MessagesOfAnotherLengthAreFound) {
  EXPECT_THROW(RunRanks(2, kLong, [](Communicator& world) { SendLength(world, 3, 4); }), RankLost);
  EXPECT_THROW(RunRanks(2, kLong, [](Communicator& world) { SendLength(world, 4, 3); }), RankLost);
}

TEST(LostRank, CollectivesOfDifferentGroupsAreNotMixedUp) {
  EXPECT_THROW(RunRanks(2, kShort,
                        [](Communicator& world) {
                          const auto a = world.Split(0, 0);
                          const auto b = world.Split(0, 0);
                          std::vector<float> x(3);
                          (world.rank() == 0 ? a : b)->AllReduceSum(x);
                        }),
               RankLost);
}

// The ranks disagree on the counts of an all-to-all: its message is not taken for a later one.
TEST(LostRank, UnexpectedMessagesAreNotTakenForLaterOnes) {
  RunRanks(2, kLong, [](Communicator& world) {
    std::vector<int64_t> out(2);
    if (world.rank() == 1) out[0] = 1;
    const std::vector<std::byte> send(static_cast<size_t>(out[0]), std::byte{66});
    world.AllToAll(send, out, {}, std::vector<int64_t>(2));
    const std::byte mine = static_cast<std::byte>(world.rank());
    std::vector<std::byte> all(2);
    world.AllGatherEqual({&mine, 1}, all);
    EXPECT_EQ(all, (std::vector{std::byte{0}, std::byte{1}}));
  });
}

}  // namespace
}  // namespace latte::communicator_test
