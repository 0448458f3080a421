#include "src/engine/ranks/follower.h"

#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "src/cache/page_bytes.h"
#include "src/engine/ranks/group_settings.h"
#include "src/engine/ranks/step_call.h"
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

 private:
  StepContext ContextOf(const StepCall& call) {
    StepContext step;
    step.tokens = call.tokens;
    step.positions = call.positions;
    step.slots = call.slots;
    step.sequences = call.sequences;
    step.key_positions = call.key_positions;
    step.keys_are_chosen = !call.key_positions.empty();
    step.tensor_ranks = parts_.ranks;
    step.global_tokens = std::ssize(call.tokens);
    step.arithmetic = settings_.dtype;
    step.int8_activations = settings_.options.int8_activations;
    step.prefill_workspace_tokens = settings_.options.prefill_workspace_tokens;
    step.cache = &cache_;
    step.workspace = &workspace_;
    step.exec.threads = &threads_;
    step.exec.machine = parts_.machine;
    step.exec.selections = &selections_;
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
    case StepCallKind::kStop:
      return;
  }
}

// The leader may be idle for any time; whether it lives is for others to find out.
constexpr std::chrono::hours kUntilACall(24 * 365);

Status Run(const FollowerParts& parts) {
  const RankShare share{parts.ranks->rank(), parts.ranks->size()};
  const Model& model = *parts.model;
  std::vector<std::byte> message;
  std::optional<Computer> computer;
  while (true) {
    LATTE_ASSIGN_OR_RETURN(const StepCall call, NextCall(*parts.ranks, message));
    if (call.kind == StepCallKind::kStop) return {};
    if (call.kind != StepCallKind::kStart) {
      if (!computer) return Corrupt("a call of the leader before its settings");
      computer->Do(call);
      continue;
    }
    LATTE_ASSIGN_OR_RETURN(Settings settings,
                           ReadSettings(call.page, model.config(), *parts.machine, share));
    computer.reset();
    LATTE_ASSIGN_OR_RETURN(LatentCache cache, LatentCache::Create(settings.cache_spec,
                                                                  settings.pages, model.device()));
    computer.emplace(parts, std::move(settings), std::move(cache));
  }
}

[[noreturn]] void Fail(Communicator& ranks, const std::string& why) {
  const RankLost lost(ranks.rank(), fmt::format("rank {} failed: {}", ranks.rank(), why));
  ranks.Abandon(lost);
  throw lost;
}

}  // namespace

Result<StepCall> NextCall(Communicator& ranks, std::vector<std::byte>& message) {
  int64_t size = 0;
  ranks.SetDeadline(kUntilACall);
  ranks.Broadcast(std::as_writable_bytes(std::span(&size, 1)), 0);
  ranks.SetDeadline(kCallDeadline);
  if (size <= 0) return Corrupt(fmt::format("a call of the leader has {} bytes", size));
  message.resize(static_cast<size_t>(size));
  ranks.Broadcast(message, 0);
  return ReadStepCall(message);
}

void Follow(const FollowerParts& parts) {
  try {
    if (const Status done = Run(parts); !done) Fail(*parts.ranks, done.error().message);
  } catch (const RankLost&) {
    throw;
  } catch (const std::exception& error) {
    Fail(*parts.ranks, error.what());
  }
}

}  // namespace latte
