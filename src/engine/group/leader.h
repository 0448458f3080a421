// The side of a rank that leads others. It schedules, samples and answers; the others compute what it
// announces (follower.h), so they need neither requests nor a scheduler, and no decision can differ.
//
// The ranks of the world are divided into groups of neighbours; without data parallelism there is one
// group. The ranks of a group share heads, dense MLPs and vocabulary. Routed experts belong to the world.
// A rank leads
//   the world   one engine; ranks of other groups take part without tokens, or
//   its group   one engine per group; their leaders meet before calls with experts (meeting.h)
#pragma once

#include <optional>

#include "src/comm/communicator.h"
#include "src/engine/group/meeting.h"
#include "src/engine/settings.h"
#include "src/engine/step/step_call.h"
#include "src/models/model.h"

namespace latte {

// The communicators of one rank. They outlive what uses them.
struct RankComms {
  Communicator* world = nullptr;
  Communicator* group = nullptr;    // the world, if there is one group
  Communicator* leaders = nullptr;  // the first rank of every group; null for other ranks
  int64_t groups = 1;
  int64_t group_index = 0;  // of this rank's group
};

// Gives `step` the ranks that compute with this one. group_tokens: of StepCall; outlives the step.
void JoinStep(const RankComms& comms, std::span<const int64_t> group_tokens, StepContext& step);

// Tells the followers what to do. Every function throws RankLost. Engine-thread only.
class Followers {
 public:
  enum class Of { kWorld, kGroup };
  // This rank is the first of the world, or of its group.
  Followers(const RankComms& comms, Of of);

  const RankComms& comms() const { return comms_; }
  // Null for the leader of the world.
  Meeting* meeting() { return meeting_ ? &*meeting_ : nullptr; }

  // A new engine of the leader: each follower makes a cache for its settings.
  void Start(const Settings& settings);
  void Announce(const StepCall& call);
  void CopyPage(int32_t from, int32_t to);
  void LoadPage(int32_t page, std::span<const std::byte> bytes);

  // The followers end. Nothing may be announced afterwards.
  void Stop();

 private:
  RankComms comms_;
  Communicator* ranks_;  // that follow
  std::optional<Meeting> meeting_;
};

// The error of a rank that is lost in `call`.
template <class F>
Status CatchLostRanks(const F& call) {
  try {
    call();
    return {};
  } catch (const RankLost& lost) {
    return Fail(Code::kUnavailable, lost.what());
  }
}

// Ends the group for `why`: the others learn which rank has failed.
[[noreturn]] void EndGroup(Communicator& world, const std::string& why);

// A model whose weights several ranks share, for an engine that knows of one. `followers` outlives
// it. Errors of a step, a lack of memory among them, leave the ranks at different calls: they are
// thrown as RankLost, and the group ends.
class SharedModel final : public Model {
 public:
  SharedModel(std::shared_ptr<const Model> share, Followers& followers)
      : share_(std::move(share)), followers_(followers) {}

  const ModelConfig& config() const override { return share_->config(); }
  const Device& device() const override { return share_->device(); }
  int64_t draft_layers() const override { return share_->draft_layers(); }
  int64_t weight_bytes() const override { return share_->weight_bytes(); }
  void Forward(StepContext& step, const TensorView& h) const override;
  void FinishStep(StepContext& step) const override;
  void Logits(StepContext& step, const TensorView& h, const TensorView& logits) const override;
  void Draft(StepContext& step, DraftRun run, const TensorView& h,
             const TensorView& z) const override;
  void AppendDraftRows(StepContext& step, DraftRun run, const TensorView& h) const override;
  void DraftLogits(StepContext& step, int64_t layer, const TensorView& z,
                   const TensorView& logits) const override;

 private:
  template <class F>
  void Compute(StepCall call, StepContext& step, const F& compute) const;
  template <class F>
  void Meet(const WantedCall& wanted, StepCall call, StepContext& step, const F& compute) const;
  void TakePart(const AgreedCall& agreed, const StepContext& step) const;

  std::shared_ptr<const Model> share_;
  Followers& followers_;
};

}  // namespace latte
