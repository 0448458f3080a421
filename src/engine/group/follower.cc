#include "src/engine/group/follower.h"

#include <optional>

#include "src/cache/page_bytes.h"
#include "src/engine/group/group_settings.h"
#include "src/engine/group/messages.h"
#include "src/engine/step/step_call.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

// Memory for rows of f32 that grows to the largest use.
class Rows {
 public:
  TensorView Fit(int64_t rows, int64_t columns) {
    if (std::ssize(values_) < rows * columns) values_.resize(static_cast<size_t>(rows * columns));
    return TensorView(values_.data(), DType::kF32, {rows, columns});
  }

 private:
  std::vector<float> values_;
};

// Cache and scratch memory for the settings of one engine of the leader.
class Computer {
 public:
  Computer(const FollowerParts& parts, Settings settings, LatentCache cache)
      : parts_(parts),
        settings_(std::move(settings)),
        cache_(std::move(cache)),
        threads_(settings_.options.threads),
        workspace_(parts.model->device()) {
    workspace_.Reserve(StepWorkspaceBytes(parts.model->config(), settings_.options));
  }

  void Do(const StepCall& call);
  // A call of the leader of the world, if this rank is in another group than the leader: only experts have
  // something to do.
  void TakePart(const StepCall& call);

 private:
  StepContext Context(const StepCall& call) {
    StepContext step;
    JoinStep(parts_.comms, call.group_tokens, step);
    step.arithmetic = settings_.dtype;
    step.int8_activations = settings_.options.int8_activations;
    step.prefill_workspace_tokens = settings_.options.prefill_workspace_tokens;
    step.expert_exchange = settings_.expert_exchange;
    step.cache = &cache_;
    step.workspace = &workspace_;
    step.exec.threads = &threads_;
    step.exec.machine = parts_.machine;
    step.exec.selections = &selections_;
    return step;
  }
  StepContext ContextOf(const StepCall& call) {
    StepContext step = Context(call);
    step.tokens = call.tokens;
    step.positions = call.positions;
    step.slots = call.slots;
    step.sequences = call.sequences;
    step.key_positions = call.key_positions;
    step.keys_are_chosen = !call.key_positions.empty();
    return step;
  }

  FollowerParts parts_;
  Settings settings_;
  LatentCache cache_;
  ThreadPool threads_;
  Workspace workspace_;
  Selections selections_;
  Rows out_;
};

void Computer::Do(const StepCall& call) {
  const Workspace::Scope scope(workspace_);
  const Model& model = *parts_.model;
  const int64_t width = model.config().mla.d;
  const int64_t vocab = model.config().vocab;
  const int64_t rows = call.rows.empty() ? 0 : call.rows.shape[0];
  StepContext step = ContextOf(call);
  switch (call.kind) {
    case StepCallKind::kForward:
      selections_.Clear();
      return model.Forward(step, out_.Fit(step.token_count(), width));
    case StepCallKind::kLogits:
      return model.Logits(step, call.rows, out_.Fit(rows, vocab));
    case StepCallKind::kDraft:
      return model.Draft(step, call.run, call.rows, out_.Fit(rows, width));
    case StepCallKind::kAppendDraftRows:
      return model.AppendDraftRows(step, call.run, call.rows);
    case StepCallKind::kDraftLogits:
      return model.DraftLogits(step, call.run.layer, call.rows, out_.Fit(rows, vocab));
    case StepCallKind::kCopyPage:
      return CopyPage(cache_, call.from, call.to);
    case StepCallKind::kLoadPage:
      return LoadPage(cache_, call.to, call.page);
    case StepCallKind::kOpen:
    case StepCallKind::kStart:
    case StepCallKind::kGroups:
    case StepCallKind::kStop:
      return;
  }
}

void Computer::TakePart(const StepCall& call) {
  const Workspace::Scope scope(workspace_);
  StepContext step = Context(call);
  const TensorView no_rows(nullptr, DType::kF32, {0, parts_.model->config().mla.d});
  if (call.kind == StepCallKind::kForward) parts_.model->Forward(step, no_rows);
  if (call.kind == StepCallKind::kDraft) parts_.model->Draft(step, call.run, no_rows, no_rows);
}

Status Run(const FollowerParts& parts) {
  const RankComms& comms = parts.comms;
  const bool of_world = parts.of == Followers::Of::kWorld;
  Communicator& leader = of_world ? *comms.world : *comms.group;
  const bool in_leaders_group = !of_world || comms.group_index == 0;
  const Model& model = *parts.model;
  std::vector<std::byte> message;
  std::optional<Computer> computer;
  while (true) {
    LATTE_ASSIGN_OR_RETURN(const StepCall call, NextCall(leader, message));
    if (call.kind == StepCallKind::kStop) return {};
    if (call.kind == StepCallKind::kGroups && parts.join_groups) {
      LATTE_RETURN_IF_ERROR(parts.join_groups(call.page));
      continue;
    }
    if (call.kind != StepCallKind::kStart) {
      if (!computer) return Corrupt("a call of the leader before its settings");
      in_leaders_group ? computer->Do(call) : computer->TakePart(call);
      continue;
    }
    const RankShare share{comms.group->rank(), comms.group->size()};
    LATTE_ASSIGN_OR_RETURN(Settings settings,
                           ReadSettings(call.page, model.config(), *parts.machine, share));
    computer.reset();
    // Ranks of other groups keep no rows.
    const int64_t pages = in_leaders_group ? settings.pages : 1;
    LATTE_ASSIGN_OR_RETURN(LatentCache cache,
                           LatentCache::Create(settings.cache_spec, pages, model.device()));
    computer.emplace(parts, std::move(settings), std::move(cache));
  }
}

}  // namespace

Result<StepCall> NextCall(Communicator& ranks, std::vector<std::byte>& message) {
  WaitForMessage(ranks, message);
  return ReadStepCall(message);
}

void Follow(const FollowerParts& parts) {
  Communicator& world = *parts.comms.world;
  try {
    if (const Status done = Run(parts); !done) EndGroup(world, done.error().message);
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    EndGroup(world, error.what());
  }
}

}  // namespace latte
