#include "src/engine/group/leader.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/engine/group/group_settings.h"
#include "src/engine/group/messages.h"

namespace latte {

void EndGroup(Communicator& world, const std::string& why) {
  const RankLost lost(world.rank(), fmt::format("rank {} failed: {}", world.rank(), why));
  world.Abandon(lost);
  throw lost;
}

Followers::Followers(const RankComms& comms, Of of)
    : comms_(comms), ranks_(of == Of::kWorld ? comms.world : comms.group) {
  if (of == Of::kGroup) meeting_.emplace(*comms.leaders);
}

void Followers::Announce(AnnouncementKind kind, std::span<const std::byte> contents) {
  SendToAll(*ranks_, WriteAnnouncement(kind, contents));
}

void Followers::Start(const Settings& settings) {
  Announce(AnnouncementKind::kStart, WriteSettings(settings));
}

void Followers::Stop() { Announce(AnnouncementKind::kStop, {}); }

void Followers::Fail(const std::string& why) { EndGroup(*comms_.world, why); }

void Followers::Send(const Step& step) { SendToAll(*ranks_, WriteAnnouncement(step)); }

AgreedCall Followers::Ask(const WantedCall& mine) {
  AgreedCall agreed = meeting_->Ask(mine);
  const int64_t most = std::ranges::max(agreed.group_tokens);
  for (const int64_t tokens : agreed.group_tokens) idle_tokens_ += most - tokens;
  return agreed;
}

// Only steps with experts concern other groups.
void Followers::Announce(Step& step, Runner& runner) {
  const int64_t tokens = step.kind == StepKind::kDraftRows ? 0 : step.token_count();
  step.group_tokens.Clear();
  if (tokens > 0 && comms_.groups > 1 && !meeting_)
    for (int64_t group = 0; group < comms_.groups; ++group)
      step.group_tokens.Add(comms_.spread ? RankShare{group, comms_.groups}.Of(tokens)
                            : group == 0  ? tokens
                                          : 0);
  while (tokens > 0 && meeting_) {
    const bool drafts = step.kind == StepKind::kDraft;
    const AgreedCall agreed =
        Ask({drafts ? GroupCall::kDraft : GroupCall::kForward, step.run.layer, tokens});
    if (!agreed.is_mine) {
      TakePart(agreed, runner);
      continue;
    }
    for (const int64_t count : agreed.group_tokens) step.group_tokens.Add(count);
    break;
  }
  Send(step);
}

void Followers::TakePart(const AgreedCall& agreed, Runner& runner) {
  if (!idle_) idle_.emplace(StepCapacity{.groups = comms_.groups});
  idle_->Clear();
  idle_->kind = agreed.call == GroupCall::kDraft ? StepKind::kDraft : StepKind::kDecoder;
  idle_->run.layer = agreed.layer;
  for (const int64_t count : agreed.group_tokens) idle_->group_tokens.Add(count);
  Send(*idle_);
  runner.RunAnnounced(*idle_);
}

void Followers::Finish(Runner& runner) {
  if (!meeting_) return;
  while (true) {
    const AgreedCall agreed = Ask({});
    if (agreed.is_mine) return;  // all want it
    TakePart(agreed, runner);
  }
}

}  // namespace latte
