// A rank as a process of its own, for front_test.cc to stop and to kill.
// Usage: comm_rank_process ADDRESS WORLD_SIZE RANK SECRET INTERVAL_MS
// It joins and waits until another rank or the front is lost or leaves. Exit code 0 then, 2: it did
// not join.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "src/comm/control/rank.h"
#include "src/comm/control/secret.h"

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const latte::GroupIdentity group{.world_size = static_cast<uint32_t>(std::atoi(argv[2])),
                                   .epoch = 1,
                                   .config_hash = latte::Digest("config")};
  const latte::ControlOptions options{.interval = std::chrono::milliseconds(std::atoi(argv[5]))};
  std::atomic<bool> ended = false;
  const auto rank = latte::ControlRank::Join(
      argv[1], group, std::atoi(argv[3]), argv[4], options, std::chrono::seconds(10),
      {.lost = [&](const latte::RankLost&) { ended = true; }, .left = [&](int) { ended = true; }});
  if (!rank) {
    std::fprintf(stderr, "%s\n", latte::ToString(rank.error()).c_str());
    return 2;
  }
  while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return 0;
}
