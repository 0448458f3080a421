#include "src/engine/group/leader.h"

#include <fmt/format.h>

#include "src/engine/group/group_settings.h"
#include "src/engine/group/messages.h"

namespace latte {
namespace {

StepCall CallOf(StepCallKind kind, const StepContext& step, const TensorView& rows = {}) {
  StepCall call;
  call.kind = kind;
  call.tokens = step.tokens;
  call.positions = step.positions;
  call.slots = step.slots;
  call.sequences.assign(step.sequences.begin(), step.sequences.end());
  call.rows = rows;
  return call;
}

}  // namespace

void JoinStep(const RankComms& comms, std::span<const int64_t> group_tokens, StepContext& step) {
  step.tensor_ranks = comms.group;
  if (comms.groups == 1) return;
  step.expert_ranks = comms.world;
  step.group_tokens = group_tokens;
}

void EndGroup(Communicator& world, const std::string& why) {
  const RankLost lost(world.rank(), fmt::format("rank {} failed: {}", world.rank(), why));
  world.Abandon(lost);
  throw lost;
}

Followers::Followers(const RankComms& comms, Of of)
    : comms_(comms), ranks_(of == Of::kWorld ? comms.world : comms.group) {
  if (of == Of::kGroup) meeting_.emplace(*comms.leaders);
}

void Followers::Announce(const StepCall& call) { SendToAll(*ranks_, WriteStepCall(call)); }

void Followers::Start(const Settings& settings) {
  const std::vector<std::byte> message = WriteSettings(settings);
  StepCall call;
  call.kind = StepCallKind::kStart;
  call.page = message;
  Announce(call);
}

void Followers::CopyPage(int32_t from, int32_t to) {
  StepCall call;
  call.kind = StepCallKind::kCopyPage;
  call.from = from;
  call.to = to;
  Announce(call);
}

void Followers::LoadPage(int32_t page, std::span<const std::byte> bytes) {
  StepCall call;
  call.kind = StepCallKind::kLoadPage;
  call.to = page;
  call.page = bytes;
  Announce(call);
}

void Followers::Stop() { Announce({}); }

// compute() with the followers. Whatever it throws ends the group: the others are in the middle of it.
template <class F>
void SharedModel::Compute(StepCall call, StepContext& step, const F& compute) const {
  followers_.Announce(call);
  JoinStep(followers_.comms(), call.group_tokens, step);
  try {
    compute();
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    EndGroup(*followers_.comms().world, error.what());
  }
}

// compute() once it is the turn of what this group wants.
template <class F>
void SharedModel::Meet(const WantedCall& wanted, StepCall call, StepContext& step,
                       const F& compute) const {
  if (followers_.meeting() == nullptr) {
    call.group_tokens.assign(static_cast<size_t>(followers_.comms().groups), 0);
    call.group_tokens.front() = wanted.tokens;
    return Compute(std::move(call), step, compute);
  }
  while (true) {
    AgreedCall agreed = followers_.meeting()->Ask(wanted);
    if (agreed.is_mine) {
      call.group_tokens = std::move(agreed.group_tokens);
      return Compute(std::move(call), step, compute);
    }
    TakePart(agreed, step);
  }
}

// In a call of other groups, in the middle of `step`.
void SharedModel::TakePart(const AgreedCall& agreed, const StepContext& step) const {
  StepContext idle = step;
  idle.tokens = {};
  idle.positions = {};
  idle.slots = {};
  idle.sequences = {};
  idle.key_positions = {};
  idle.keys_are_chosen = false;
  const TensorView no_rows(nullptr, DType::kF32, {0, config().mla.d});
  StepCall call;
  call.group_tokens = agreed.group_tokens;
  call.run.layer = agreed.layer;
  if (agreed.call == GroupCall::kForward) {
    call.kind = StepCallKind::kForward;
    Compute(std::move(call), idle, [&] { share_->Forward(idle, no_rows); });
  } else {
    call.kind = StepCallKind::kDraft;
    Compute(std::move(call), idle,
            [&] { share_->Draft(idle, {.layer = agreed.layer}, no_rows, no_rows); });
  }
}

void SharedModel::FinishStep(StepContext& step) const {
  if (followers_.meeting() == nullptr) return;
  while (true) {
    const AgreedCall agreed = followers_.meeting()->Ask({});
    if (agreed.is_mine) return;  // all want it
    TakePart(agreed, step);
  }
}

void SharedModel::Forward(StepContext& step, const TensorView& h) const {
  if (step.token_count() == 0) return;
  Meet({GroupCall::kForward, 0, step.token_count()}, CallOf(StepCallKind::kForward, step), step,
       [&] { share_->Forward(step, h); });
}

void SharedModel::Draft(StepContext& step, DraftRun run, const TensorView& h,
                        const TensorView& z) const {
  if (step.token_count() == 0) return;
  StepCall call = CallOf(StepCallKind::kDraft, step, h);
  call.run = run;
  if (step.keys_are_chosen) call.key_positions = step.key_positions;
  Meet({GroupCall::kDraft, run.layer, step.token_count()}, std::move(call), step,
       [&] { share_->Draft(step, run, h, z); });
}

// The other calls have no experts, so they concern the group alone.

void SharedModel::Logits(StepContext& step, const TensorView& h, const TensorView& logits) const {
  if (h.shape[0] == 0) return;
  Compute(CallOf(StepCallKind::kLogits, step, h), step, [&] { share_->Logits(step, h, logits); });
}

void SharedModel::AppendDraftRows(StepContext& step, DraftRun run, const TensorView& h) const {
  if (step.token_count() == 0) return;
  StepCall call = CallOf(StepCallKind::kAppendDraftRows, step, h);
  call.run = run;
  Compute(std::move(call), step, [&] { share_->AppendDraftRows(step, run, h); });
}

void SharedModel::DraftLogits(StepContext& step, int64_t layer, const TensorView& z,
                              const TensorView& logits) const {
  if (z.shape[0] == 0) return;
  StepCall call = CallOf(StepCallKind::kDraftLogits, step, z);
  call.run.layer = layer;
  Compute(std::move(call), step, [&] { share_->DraftLogits(step, layer, z, logits); });
}

}  // namespace latte
