// A rank that computes what its leader announces (leader.h).
#pragma once

#include <functional>
#include <memory>

#include "src/engine/group/leader.h"
#include "src/engine/step/runner_memory.h"
#include "src/kernels/machine.h"

namespace latte {

// All must outlive the call.
struct FollowerParts {
  const Model* model = nullptr;      // this rank's share
  const Machine* machine = nullptr;  // runs the model
  RankComms comms;
  Followers::Of of = Followers::Of::kWorld;  // whose first rank leads this one
  // Of the world: computes in its group, as leader or follower, until the engines of all groups
  // end. Gets the contents of AnnouncementKind::kGroups. Errors end the world.
  std::function<Status(std::span<const std::byte>)> join_groups = {};
};

// The next announcement of rank 0 of `ranks`. `message`: its memory. Errors: of ReadAnnouncement.
// Throws RankLost.
[[nodiscard]] Result<Announcement> NextAnnouncement(Communicator& ranks,
                                                    std::vector<std::byte>& message);

class FollowingRunner;

// A rank in the steps over sequences that are spread over groups. Rank 0 of the world leads all
// ranks, also the leaders of groups, between the steps of the groups.
class SpreadFollower {
 public:
  // memory: of the runner of this rank's group. All must outlive it. Requires: comms.across.
  SpreadFollower(const FollowerParts& parts, RunnerMemory& memory);
  ~SpreadFollower();

  // Computes until rank 0 announces kPause. Errors: kCorrupt for an announcement that does not
  // belong here; of ReadSettings. Throws RankLost.
  [[nodiscard]] Status Follow();

 private:
  FollowerParts parts_;
  RunnerMemory& memory_;
  std::unique_ptr<FollowingRunner> runner_;  // null: rank 0 has no engine yet
  std::vector<std::byte> message_;
};

// Computes until the leader stops the group; then returns without an error. Settings and the number
// of pages are the leader's. Throws RankLost: also if this rank fails, so that the others learn of
// it.
void Follow(const FollowerParts& parts);

}  // namespace latte
