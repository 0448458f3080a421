// The leader's side of a tensor-parallel group. One rank schedules, samples and answers: the leader. The
// others compute what it announces (follower.h), so they need neither requests nor a scheduler, and no
// decision can differ.
#pragma once

#include "src/comm/communicator.h"
#include "src/engine/ranks/step_call.h"
#include "src/engine/settings.h"
#include "src/models/model.h"

namespace latte {

// Tells the followers what to do. Every function throws RankLost. Engine-thread only.
class Followers {
 public:
  // ranks: the group, of which this is rank 0; it outlives this.
  explicit Followers(Communicator& ranks) : ranks_(ranks) {}

  Communicator& ranks() { return ranks_; }
  // A new engine of the leader: each follower makes a cache for its settings.
  void Start(const Settings& settings);
  void Announce(const StepCall& call);
  void CopyPage(int32_t from, int32_t to);
  void LoadPage(int32_t page, std::span<const std::byte> bytes);

  // The followers end. Nothing may be announced afterwards.
  void Stop();

 private:
  Communicator& ranks_;
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

// A model whose weights several ranks share, for an engine that knows of one. `followers` outlives
// it. Errors of a step, a lack of memory among them, leave the ranks at different calls: they are
// thrown as RankLost, and the group ends.
class SharedModel final : public Model {
 public:
  SharedModel(std::unique_ptr<Model> share, Followers& followers)
      : share_(std::move(share)), followers_(followers) {}

  const ModelConfig& config() const override { return share_->config(); }
  const Device& device() const override { return share_->device(); }
  int64_t draft_layers() const override { return share_->draft_layers(); }
  void Forward(StepContext& step, const TensorView& h) const override;
  void Logits(StepContext& step, const TensorView& h, const TensorView& logits) const override;
  void Draft(StepContext& step, DraftRun run, const TensorView& h,
             const TensorView& z) const override;
  void AppendDraftRows(StepContext& step, DraftRun run, const TensorView& h) const override;
  void DraftLogits(StepContext& step, int64_t layer, const TensorView& z,
                   const TensorView& logits) const override;

 private:
  std::unique_ptr<Model> share_;
  Followers& followers_;
};

}  // namespace latte
