// The engine's loop over a model that somebody else loaded: mail → plan → move pages → compute →
// draw → tell, once per step and in that order.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "latte/engine.h"

#include "src/engine/inbox.h"
#include "src/engine/output/answers.h"
#include "src/engine/page_mover.h"
#include "src/engine/run/runner.h"
#include "src/engine/schedule/scheduler.h"
#include "src/engine/settings.h"

namespace latte {

// What an engine is made over. All must outlive it.
struct EngineParts {
  const Model* model = nullptr;
  const Machine* machine = nullptr;
  const Tokenizer* tokenizer = nullptr;       // null: requests are tokens, answers have no text
  std::shared_ptr<const void> owner = {};     // of the others, if the engine is to keep them alive
};

// An engine over a model that the caller loaded.
class EngineCore final : public Engine {
 public:
  // Opens settings.options.cache_dir if it is set, for rows of the model `key`.
  // Errors: kExhausted when the cache does not fit; of PrefixStore::Open.
  [[nodiscard]] static Result<std::unique_ptr<EngineCore>> Create(const EngineParts& parts,
                                                                  const Settings& settings,
                                                                  const ModelKey& key = {});

  [[nodiscard]] Result<RequestId> Submit(Request request) override;
  void Cancel(RequestId id) override { inbox_.Cancel(id); }
  void SetEventSink(EventSink sink) override { sink_ = std::move(sink); }
  [[nodiscard]] Status Step() override;
  void Wake() override { inbox_.Wake(); }
  bool WaitForWork(std::chrono::steady_clock::time_point deadline) override;
  [[nodiscard]] Status SavePrefixes() override;
  EngineStats Stats() const override;
  const EngineOptions& options() const override { return settings_.options; }

  // Asks the other data-parallel ranks how many tokens all of them compute in this step, this
  // rank's given. A rank with none of its own then joins in with an empty step. One rank: its own.
  using GlobalTokens = std::function<int64_t(int64_t own_tokens)>;
  void SetGlobalTokens(GlobalTokens global_tokens) { global_tokens_ = std::move(global_tokens); }

  // As Runner::Measure.
  void Measure(OpTimes* times) { runner_.Measure(times); }

  const Settings& settings() const { return settings_; }
  ThreadPool& threads() { return threads_; }

 private:
  EngineCore(const EngineParts& parts, const Settings& settings, LatentCache cache);
  [[nodiscard]] Status SaveAllPrefixes();
  SchedulerOptions Rules();

  // The parts of Step.
  [[nodiscard]] Status StepOnce();
  void ReadMail();
  void Enter(Submission submission);
  void CancelNow(RequestId id);
  void NoteAdmissions(const StepPlan& plan);
  void Compute(const StepPlan& plan, int64_t global_tokens);
  void EndLargest(const StepPlan& plan, const Error& error);
  void TellPromptLogprobs(const StepPlan& plan);
  [[nodiscard]] Status TellPromptLogprobs(const SequenceStep& step, int64_t first_row);
  void DrawTokens(const StepPlan& plan);
  void NoteFirstDraw(const Sequence& s);
  std::vector<SequenceId> ForkAnswers(const SequenceStep& step);  // but the first
  void Settle(SequenceId id, const Result<Drawn>& drawn);
  void End(SequenceId id, FinishReason reason, const Error& error);
  void UpdateStats(const StepPlan& plan, double seconds);

  // One token to draw: the answer, and the row of the hidden states that its logits come from.
  struct Drawing {
    SequenceId id = 0;
    int64_t row = 0;
  };
  Result<std::vector<Result<Drawn>>> DrawBlock(std::span<const Drawing> block);
  Status CheckRow(int64_t row) const;

  EngineParts parts_;
  Settings settings_;
  RequestRules rules_;
  ThreadPool threads_;
  LatentCache cache_;
  CacheManager pages_;
  Workspace workspace_;
  Runner runner_;
  Scheduler scheduler_;
  Answers answers_;
  Inbox inbox_;
  std::unique_ptr<PageMover> mover_;
  EventSink sink_;
  GlobalTokens global_tokens_;
  SequenceId last_id_ = 0;
  TensorView hidden_;            // of the step
  std::optional<Error> broken_;  // of the step that memory ran out in; there is no other step
  bool more_to_do_ = false;      // the next step needs no mail to have work
  double forward_seconds_ = 0;   // of the step
  int64_t cached_tokens_ = 0;
  int64_t disk_tokens_ = 0;

  mutable std::mutex stats_mutex_;
  EngineStats stats_;
};

}  // namespace latte
