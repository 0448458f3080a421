#include "src/engine/group/follower.h"

#include <optional>

#include "src/engine/group/group_settings.h"
#include "src/engine/group/messages.h"
#include "src/engine/step/step_settings.h"

namespace latte {
// The runner of one engine of the leader.
class FollowingRunner {
 public:
  FollowingRunner(const FollowerParts& parts, const Settings& settings, RunnerMemory& memory)
      : step_(CapacityOf(settings, parts.comms.groups)),
        runner_({.model = parts.model,
                 .cache = &memory.cache,
                 .workspace = &memory.workspace,
                 .exec = {.threads = &memory.threads, .machine = parts.machine},
                 .comms = parts.comms},
                OptionsOfRunner(settings), step_.capacity()) {
    memory.workspace.Reserve(StepWorkspaceBytes(parts.model->config(), settings.options));
  }

  // takes_part: in the experts alone, as this rank is in another group than the leader.
  [[nodiscard]] Status Run(std::span<const std::byte> step, bool takes_part) {
    LATTE_RETURN_IF_ERROR(ReadStep(step, step_));
    if (takes_part) step_.KeepOnlyGroupTokens();
    runner_.RunAnnounced(step_);
    return {};
  }

 private:
  Step step_;
  Runner runner_;
};

namespace {

Result<Settings> SettingsOf(const FollowerParts& parts, const Announcement& start) {
  return ReadSettings(start.contents, parts.model->config(), *parts.machine,
                      {parts.comms.group->rank(), parts.comms.group->size()});
}

// A rank that follows the leader of the world, or of its group.
class Follower {
 public:
  explicit Follower(const FollowerParts& parts)
      : parts_(parts),
        of_world_(parts.of == Followers::Of::kWorld),
        takes_part_(of_world_ && parts.comms.group_index != 0) {}

  [[nodiscard]] Status Run() {
    Communicator& leader = of_world_ ? *parts_.comms.world : *parts_.comms.group;
    std::vector<std::byte> message;
    while (true) {
      LATTE_ASSIGN_OR_RETURN(const Announcement next, NextAnnouncement(leader, message));
      if (next.kind == AnnouncementKind::kStop) return {};
      LATTE_RETURN_IF_ERROR(Do(next));
    }
  }

 private:
  [[nodiscard]] Status Do(const Announcement& next) {
    if (next.kind == AnnouncementKind::kGroups && parts_.join_groups)
      return parts_.join_groups(next.contents);
    if (next.kind == AnnouncementKind::kStart) return Start(next);
    if (!runner_) return Corrupt("an announcement of the leader before its settings");
    if (next.kind == AnnouncementKind::kStep) return runner_->Run(next.contents, takes_part_);
    if (next.kind == AnnouncementKind::kSpread && spread_) return spread_->Follow();
    return Corrupt("an announcement that is not for this rank");
  }

  [[nodiscard]] Status Start(const Announcement& start) {
    LATTE_ASSIGN_OR_RETURN(const Settings settings, SettingsOf(parts_, start));
    spread_.reset();
    runner_.reset();
    memory_.reset();
    const Device& device = parts_.model->device();
    // Ranks of other groups keep no rows.
    LATTE_ASSIGN_OR_RETURN(LatentCache cache,
                           LatentCache::Create(settings.cache_spec,
                                               takes_part_ ? 1 : settings.pages_of_rank(), device));
    memory_.emplace(settings.options.threads, std::move(cache), device);
    runner_.emplace(parts_, settings, *memory_);
    if (!of_world_ && parts_.comms.across != nullptr) spread_.emplace(parts_, *memory_);
    return {};
  }

  const FollowerParts& parts_;
  bool of_world_;
  bool takes_part_;
  std::optional<RunnerMemory> memory_;
  std::optional<FollowingRunner> runner_;
  std::optional<SpreadFollower> spread_;
};

}  // namespace

Result<Announcement> NextAnnouncement(Communicator& ranks, std::vector<std::byte>& message) {
  WaitForMessage(ranks, message);
  return ReadAnnouncement(message);
}

SpreadFollower::SpreadFollower(const FollowerParts& parts, RunnerMemory& memory)
    : parts_(parts), memory_(memory) {
  parts_.comms = parts.comms.ForSpread();
}
SpreadFollower::~SpreadFollower() = default;

Status SpreadFollower::Follow() {
  while (true) {
    LATTE_ASSIGN_OR_RETURN(const Announcement next,
                           NextAnnouncement(*parts_.comms.world, message_));
    if (next.kind == AnnouncementKind::kPause) return {};
    if (next.kind == AnnouncementKind::kStart) {
      LATTE_ASSIGN_OR_RETURN(const Settings settings, SettingsOf(parts_, next));
      runner_ = std::make_unique<FollowingRunner>(parts_, settings, memory_);
    } else if (next.kind == AnnouncementKind::kStep && runner_) {
      LATTE_RETURN_IF_ERROR(runner_->Run(next.contents, /*takes_part=*/false));
    } else {
      return Corrupt("an announcement of rank 0 that does not belong to spread sequences");
    }
  }
}

void Follow(const FollowerParts& parts) {
  Communicator& world = *parts.comms.world;
  try {
    if (const Status done = Follower(parts).Run(); !done) EndGroup(world, done.error().message);
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    EndGroup(world, error.what());
  }
}

}  // namespace latte
