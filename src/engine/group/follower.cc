#include "src/engine/group/follower.h"

#include <optional>

#include "src/engine/group/group_settings.h"
#include "src/engine/group/messages.h"
#include "src/engine/step/step_settings.h"

namespace latte {
namespace {

// The runner of one engine of the leader, with what it works with.
class FollowingRunner {
 public:
  FollowingRunner(const FollowerParts& parts, const Settings& settings, LatentCache cache)
      : cache_(std::move(cache)),
        threads_(settings.options.threads),
        workspace_(parts.model->device()),
        step_(CapacityOf(settings, parts.comms.groups)),
        runner_({.model = parts.model,
                 .cache = &cache_,
                 .workspace = &workspace_,
                 .exec = {.threads = &threads_, .machine = parts.machine},
                 .comms = parts.comms},
                OptionsOfRunner(settings), step_.capacity()) {
    workspace_.Reserve(StepWorkspaceBytes(parts.model->config(), settings.options));
  }

  // takes_part: in the experts alone, as this rank is in another group than the leader.
  [[nodiscard]] Status Run(std::span<const std::byte> step, bool takes_part) {
    LATTE_RETURN_IF_ERROR(ReadStep(step, step_));
    if (takes_part) step_.KeepOnlyGroupTokens();
    runner_.RunAnnounced(step_);
    return {};
  }

 private:
  LatentCache cache_;
  ThreadPool threads_;
  Workspace workspace_;
  Step step_;
  Runner runner_;
};

Status FollowLeader(const FollowerParts& parts) {
  const RankComms& comms = parts.comms;
  const bool of_world = parts.of == Followers::Of::kWorld;
  Communicator& leader = of_world ? *comms.world : *comms.group;
  const bool takes_part = of_world && comms.group_index != 0;
  const Model& model = *parts.model;
  std::vector<std::byte> message;
  std::optional<FollowingRunner> runner;
  while (true) {
    LATTE_ASSIGN_OR_RETURN(const Announcement next, NextAnnouncement(leader, message));
    if (next.kind == AnnouncementKind::kStop) return {};
    if (next.kind == AnnouncementKind::kGroups && parts.join_groups) {
      LATTE_RETURN_IF_ERROR(parts.join_groups(next.contents));
      continue;
    }
    if (next.kind == AnnouncementKind::kStep) {
      if (!runner) return Corrupt("a step of the leader before its settings");
      LATTE_RETURN_IF_ERROR(runner->Run(next.contents, takes_part));
      continue;
    }
    const RankShare share{comms.group->rank(), comms.group->size()};
    LATTE_ASSIGN_OR_RETURN(const Settings settings,
                           ReadSettings(next.contents, model.config(), *parts.machine, share));
    runner.reset();
    // Ranks of other groups keep no rows.
    LATTE_ASSIGN_OR_RETURN(
        LatentCache cache,
        LatentCache::Create(settings.cache_spec, takes_part ? 1 : settings.pages_of_rank(),
                            model.device()));
    runner.emplace(parts, settings, std::move(cache));
  }
}

}  // namespace

Result<Announcement> NextAnnouncement(Communicator& ranks, std::vector<std::byte>& message) {
  WaitForMessage(ranks, message);
  return ReadAnnouncement(message);
}

void Follow(const FollowerParts& parts) {
  Communicator& world = *parts.comms.world;
  try {
    if (const Status done = FollowLeader(parts); !done) EndGroup(world, done.error().message);
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    EndGroup(world, error.what());
  }
}

}  // namespace latte
