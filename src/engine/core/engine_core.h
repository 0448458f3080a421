// The engine's loop over a model that the caller loaded. A step drains the inbox, drafts, plans,
// moves pages, computes, samples and emits events, in that order.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "latte/engine.h"

#include "src/engine/core/page_mover.h"
#include "src/engine/grammar/grammar_service.h"
#include "src/engine/grammar/step_masks.h"
#include "src/engine/output/output_streams.h"
#include "src/engine/request/inbox.h"
#include "src/engine/schedule/scheduler.h"
#include "src/engine/settings.h"
#include "src/engine/speculate/drafter.h"
#include "src/engine/step/runner.h"
#include "src/engine/step/runner_memory.h"

namespace latte {

// What an engine is made over. All must outlive it.
struct EngineParts {
  const Model* model = nullptr;
  const Machine* machine = nullptr;        // runs the model
  const Tokenizer* tokenizer = nullptr;    // null: requests are tokens, answers have no text
  std::shared_ptr<const void> owner = {};  // of the others, if the engine is to keep them alive
  const Machine* host = nullptr;           // samples; null: `machine`
  DeviceStream stream = nullptr;           // of the model's device
  StepAnnouncer* followers = nullptr;      // of the leader of a group of ranks
  // Of another engine over the model, whose steps never run at the same time; null: the engine has
  // its own.
  std::shared_ptr<RunnerMemory> memory = {};
  // Compiles grammars for the vocabulary; null: for that of the tokenizer.
  GrammarService::MakeCompiler grammar_compiler = {};
  std::function<std::chrono::steady_clock::time_point()> now = {};  // for what takes too long
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

  // As Runner::Measure.
  void Measure(OpTimes* times) { runner_.Measure(times); }

  const Settings& settings() const { return settings_; }
  // What Submit checks a request against; thread-safe, as the count of waiting requests.
  const RequestRules& rules() const { return rules_; }
  QueueCount queue() const { return inbox_.queue(); }
  ThreadPool& threads() { return memory_->threads; }
  const std::shared_ptr<RunnerMemory>& memory() const { return memory_; }
  using Requests = std::map<RequestId, std::unique_ptr<RequestState>>;
  const Requests& requests() const { return requests_; }  // that have not ended; between steps
  // Engine-thread only, between steps.
  CacheManager& pages() { return pages_; }
  const CacheManager& pages() const { return pages_; }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  // A token to sample, and the row of the hidden states that its logits come from; its drafts have
  // the rows after it.
  struct Sampling {
    const SequenceStep* step = nullptr;
    Output* output = nullptr;
    int64_t row = 0;
    int64_t rows = 1;             // 0: the answer ends before its first token
    bool forks = false;           // another output of the request is to be made for it
    int64_t accepted_before = 0;  // Output::accepted
    int64_t in_block = 0;         // `row` in its block of logits
    int64_t mask_row = 0;         // of the output's masks
  };
  // Samplings [begin, end) of the step, which share a block of logits.
  struct SamplingBlock {
    size_t begin = 0;
    size_t end = 0;
  };
  // Rows of a prompt, in blocks of logits of their own.
  struct PromptBlock {
    Output* output = nullptr;
    int64_t first = 0;  // token
    int64_t blocks = 0;
  };

  EngineCore(const EngineParts& parts, const Settings& settings);
  [[nodiscard]] Status SaveAllPrefixes();
  SchedulerOptions OptionsOfScheduler();
  void MakeDrafter();

  // The parts of Step.
  void StepOnce();
  void RunStep(StepPlan& plan);
  void DrainInbox();
  void ProposeDrafts();
  void AddRequest(std::unique_ptr<RequestState> request);
  void AddCompiled();
  void EndLateMasks();
  void CancelRequest(RequestId id);
  void RecordAdmissions(const StepPlan& plan);
  Status Compute();
  void Computed(const StepPlan& plan, bool logits_follow);
  void EndLargest(const StepPlan& plan, const Error& error);
  void EmitPromptLogprobs(const PromptBlock& prompt);
  void RecordFirstToken(Output& output);
  void Remove(Output& output);
  void End(Output& output, FinishReason reason, const Error& error);
  void DropEndedRequests();
  void SaveNewPages();
  void UpdateStats(const StepPlan& plan, double seconds);

  void PlanLogits(const StepPlan& plan);
  void PlanPromptLogits(const StepPlan& plan);
  void PlanSampling(const StepPlan& plan);
  void AddSamplingBlock(std::span<Sampling> block);
  void UseLogits();
  void BeginSampling();
  void SampleBlock(std::span<const Sampling> block);
  Result<std::vector<Result<SampledToken>>> SampleRound(std::span<const Sampling> round,
                                                        const StepLogits& block);
  SampleInput InputOf(const Sampling& s, std::span<const float> logits) const;
  bool ApplyToken(const Sampling& s, const Result<SampledToken>& sampled);
  Result<StepLogits> NextLogits();

  EngineParts parts_;
  Settings settings_;
  RequestRules rules_;
  std::shared_ptr<RunnerMemory> memory_;
  CacheManager pages_;
  latte::Step step_;
  Runner runner_;
  Scheduler scheduler_;
  DraftPolicy draft_policy_;
  OutputStreams streams_;
  Inbox inbox_;
  Requests requests_;
  std::unique_ptr<PageMover> mover_;
  std::unique_ptr<Drafter> drafter_;      // null: no drafts
  std::vector<RequestState*> compiling_;  // requests that wait for their grammar
  GrammarService grammars_;
  StepMasks masks_;
  EventSink sink_;
  SequenceId last_id_ = 0;
  // The plan of the step's logits, in the order of their blocks: prompts first.
  std::vector<PromptBlock> prompt_blocks_;
  std::vector<SamplingBlock> sampling_blocks_;
  std::vector<Sampling> samplings_;
  std::optional<Error> broken_;  // of the step that failed; there is no other step
  std::deque<int32_t> unsaved_;  // pages with known prefixes that are to be saved
  bool more_to_do_ = false;      // the next step needs no message to have work
  double forward_seconds_ = 0;   // of the step
  bool some_ended_ = false;      // requests_ may hold ended ones
  int64_t cached_tokens_ = 0;
  int64_t disk_tokens_ = 0;
  int64_t drafted_tokens_ = 0;
  int64_t accepted_tokens_ = 0;

  mutable std::mutex stats_mutex_;
  EngineStats stats_;
};

}  // namespace latte
