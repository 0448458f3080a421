// The leader of a group of ranks. It schedules, samples and answers; the others compute the steps
// that it announces (follower.h). So they need neither requests nor a scheduler, and no decision
// can differ.
//
// The ranks of the world are divided into groups of neighbours; without data parallelism there is
// one group. The ranks of a group share heads, dense MLPs and vocabulary. Routed experts belong to
// the world. A rank leads
//   the world   one engine; ranks of other groups take part without tokens, or
//   its group   one engine per group; their leaders meet before steps with experts (meeting.h)
#pragma once

#include <optional>
#include <string>

#include "src/comm/communicator.h"
#include "src/engine/group/announcement.h"
#include "src/engine/group/meeting.h"
#include "src/engine/settings.h"
#include "src/engine/step/lost_ranks.h"
#include "src/engine/step/runner.h"

namespace latte {

// Tells the followers what to do. Every function throws RankLost. Engine-thread only.
class Followers final : public StepAnnouncer {
 public:
  enum class Of { kWorld, kGroup };
  // This rank is the first of the world, or of its group.
  Followers(const RankComms& comms, Of of);

  const RankComms& comms() const override { return comms_; }

  void Announce(AnnouncementKind kind, std::span<const std::byte> contents);
  // The followers end. Nothing may be announced afterwards.
  void Stop();

  void Start(const Settings& settings) override;
  void Announce(Step& step, Runner& runner) override;
  void Finish(Runner& runner) override;
  void Fail(const std::string& why) override;
  int64_t idle_tokens() const override { return idle_tokens_; }

 private:
  void Send(const Step& step);
  AgreedCall Ask(const WantedCall& mine);
  // In a step of other groups.
  void TakePart(const AgreedCall& agreed, Runner& runner);

  RankComms comms_;
  Communicator* ranks_;             // that follow
  std::optional<Meeting> meeting_;  // none: of the leader of the world
  std::optional<Step> idle_;        // a step of other groups
  int64_t idle_tokens_ = 0;
};

// Ends the group for `why`: the others learn which rank has failed.
[[noreturn]] void EndGroup(Communicator& world, const std::string& why);

}  // namespace latte
