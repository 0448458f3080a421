// A rank as a process of its own, for front_test.cc to stop and to kill.
// Usage: comm_rank_process ADDRESS WORLD_SIZE RANK SECRET [LOST]
// It joins and waits until another rank or the front is lost or leaves; with LOST it reports that
// it has lost this rank, and ends at once. Exit code 0 then, 2: it did not join.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <unistd.h>

#include "src/comm/control/rank.h"
#include "src/comm/control/secret.h"

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const latte::WorldIdentity world{.world_size = static_cast<uint32_t>(std::atoi(argv[2])),
                                   .epoch = 1,
                                   .config_hash = latte::Digest("config")};
  std::atomic<bool> ended = false;
  const auto rank = latte::ControlRank::Join(
      argv[1], world, std::atoi(argv[3]), argv[4], {}, std::chrono::seconds(10),
      {.lost = [&](const latte::RankLost&) { ended = true; }, .left = [&](int) { ended = true; }});
  if (!rank) {
    std::fprintf(stderr, "%s\n", latte::ToString(rank.error()).c_str());
    return 2;
  }
  if (argc > 5) {
    (*rank)->Report({std::atoi(argv[5]), "it did not take part"});
    _exit(0);
  }
  while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return 0;
}
