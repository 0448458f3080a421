// A rank that computes what its leader announces (leader.h).
#pragma once

#include <functional>

#include "src/engine/group/leader.h"
#include "src/kernels/machine.h"

namespace latte {

// All must outlive the call.
struct FollowerParts {
  const Model* model = nullptr;      // this rank's share
  const Machine* machine = nullptr;  // runs the model
  RankComms comms;
  Followers::Of of = Followers::Of::kWorld;  // whose first rank leads this one
  // Of the world: computes in its group, as leader or follower, until the engines of all groups end. Gets
  // the contents of AnnouncementKind::kGroups. Errors end the world.
  std::function<Status(std::span<const std::byte>)> join_groups = {};
};

// The next announcement of rank 0 of `ranks`. `message`: its memory. Errors: of ReadAnnouncement. Throws
// RankLost.
[[nodiscard]] Result<Announcement> NextAnnouncement(Communicator& ranks,
                                                    std::vector<std::byte>& message);

// Computes until the leader stops the group; then returns without an error. Settings and the number of
// pages are the leader's. Throws RankLost: also if this rank fails, so that the others learn of it.
void Follow(const FollowerParts& parts);

}  // namespace latte
