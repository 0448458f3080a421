// One rank under mpirun. Usage: mpi_rank MODULE CASE. Exit code 0: all expectations hold.
//
// collectives  what every backend must do
// silent       the last rank makes no call; each other rank waits for it, names it and ends with 7
// deaf         the last rank takes nothing of a message that is too long to be sent without it
// groups       two ranks call the same collective on different groups
// dead         the last rank kills itself, the others are in a collective
// abandoned    another thread ends the wait of rank 0, or the call that is next
// shorter      rank 0 sends fewer bytes than the others expect
// longer       rank 0 sends more
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "src/comm/mpi/mpi.h"
#include "tests/support/comm/collectives_check.h"

namespace {

using latte::Communicator;
using latte::RankLost;

// A rank that has learned of a loss cannot end MPI.
[[noreturn]] void LeaveAfter(const RankLost& lost, const Communicator& world) {
  std::printf("rank %d: lost %d: %s\n", world.rank(), lost.rank(), lost.what());
  std::fflush(stdout);
  _exit(7);
}

void WaitForAll(Communicator& world) {
  try {
    world.Barrier();
  } catch (const RankLost& lost) {
    LeaveAfter(lost, world);
  }
}

bool IsLast(const Communicator& world) { return world.rank() == world.size() - 1; }

void Silent(Communicator& world) {
  world.SetDeadline(std::chrono::milliseconds(300));
  if (IsLast(world)) pause();
  WaitForAll(world);
}

void Deaf(Communicator& world) {
  world.SetDeadline(std::chrono::milliseconds(300));
  if (IsLast(world)) pause();
  std::vector<std::byte> data(size_t{32} << 20);
  try {
    world.Broadcast(data, 0);
  } catch (const RankLost& lost) {
    LeaveAfter(lost, world);
  }
}

void Groups(Communicator& world) {
  world.SetDeadline(std::chrono::milliseconds(300));
  const auto a = world.Split(0, 0);
  const auto b = world.Split(0, 0);
  std::vector<float> x(3);
  try {
    (world.rank() == 0 ? a : b)->AllReduceSum(x);
  } catch (const RankLost& lost) {
    LeaveAfter(lost, world);
  }
}

void Dead(Communicator& world) {
  if (IsLast(world)) std::raise(SIGKILL);
  WaitForAll(world);
}

void Abandoned(Communicator& world) {
  if (world.rank() > 0) pause();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    world.Abandon({1, "no heartbeat of rank 1"});
  });
  WaitForAll(world);
}

void SendLength(Communicator& world, size_t sent) {
  std::vector<std::byte> data(world.rank() == 0 ? sent : 8);
  try {
    world.Broadcast(data, 0);
  } catch (const RankLost& lost) {
    LeaveAfter(lost, world);
  }
  pause();
}

int Run(const std::string& name, Communicator& world) {
  if (name == "collectives") latte::testing_support::CheckCollectives(world);
  if (name == "silent") Silent(world);
  if (name == "deaf") Deaf(world);
  if (name == "groups") Groups(world);
  if (name == "dead") Dead(world);
  if (name == "abandoned") Abandoned(world);
  if (name == "shorter") SendLength(world, 7);
  if (name == "longer") SendLength(world, 9);
  std::printf("rank %d of %d: done\n", world.rank(), world.size());
  return testing::UnitTest::GetInstance()->Failed() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) return 2;
  const auto world = latte::ConnectMpi({}, argv[1]);
  if (!world) {
    std::fprintf(stderr, "%s\n", latte::ToString(world.error()).c_str());
    return 2;
  }
  return Run(argv[2], **world);
}
