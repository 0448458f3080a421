#include "src/engine/ranks/leader.h"

#include <fmt/format.h>

#include "src/engine/ranks/group_settings.h"

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

// Runs f() with the ranks of the group. Whatever it throws ends the group: the others are in the middle
// of it.
template <class F>
void Together(StepContext& step, Communicator& ranks, const F& f) {
  step.tensor_ranks = &ranks;
  try {
    f();
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    const RankLost lost(ranks.rank(),
                        fmt::format("rank {} failed: {}", ranks.rank(), error.what()));
    ranks.Abandon(lost);
    throw lost;
  }
}

}  // namespace

void Followers::Announce(const StepCall& call) {
  std::vector<std::byte> message = WriteStepCall(call);
  auto size = static_cast<int64_t>(message.size());
  ranks_.Broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  ranks_.Broadcast(message, 0);
}

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

void SharedModel::Forward(StepContext& step, const TensorView& h) const {
  if (step.token_count() == 0) return;
  followers_.Announce(CallOf(StepCallKind::kForward, step));
  Together(step, followers_.ranks(), [&] { share_->Forward(step, h); });
}

void SharedModel::Logits(StepContext& step, const TensorView& h, const TensorView& logits) const {
  if (h.shape[0] == 0) return;
  followers_.Announce(CallOf(StepCallKind::kLogits, step, h));
  Together(step, followers_.ranks(), [&] { share_->Logits(step, h, logits); });
}

void SharedModel::Draft(StepContext& step, DraftRun run, const TensorView& h,
                        const TensorView& z) const {
  if (step.token_count() == 0) return;
  StepCall call = CallOf(StepCallKind::kDraft, step, h);
  call.run = run;
  if (step.keys_are_chosen) call.key_positions = step.key_positions;
  followers_.Announce(call);
  Together(step, followers_.ranks(), [&] { share_->Draft(step, run, h, z); });
}

void SharedModel::AppendDraftRows(StepContext& step, DraftRun run, const TensorView& h) const {
  if (step.token_count() == 0) return;
  StepCall call = CallOf(StepCallKind::kAppendDraftRows, step, h);
  call.run = run;
  followers_.Announce(call);
  Together(step, followers_.ranks(), [&] { share_->AppendDraftRows(step, run, h); });
}

void SharedModel::DraftLogits(StepContext& step, int64_t layer, const TensorView& z,
                              const TensorView& logits) const {
  if (z.shape[0] == 0) return;
  StepCall call = CallOf(StepCallKind::kDraftLogits, step, z);
  call.run.layer = layer;
  followers_.Announce(call);
  Together(step, followers_.ranks(), [&] { share_->DraftLogits(step, layer, z, logits); });
}

}  // namespace latte
