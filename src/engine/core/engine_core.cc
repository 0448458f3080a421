#include "src/engine/core/engine_core.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"
#include "src/base/timer.h"
#include "src/engine/grammar/answer_grammar.h"
#include "src/engine/schedule/scheduler_rules.h"
#include "src/engine/speculate/lookup_drafter.h"
#include "src/engine/speculate/mtp_drafter.h"
#include "src/engine/step/lost_ranks.h"
#include "src/engine/step/step_settings.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

EngineParts Complete(EngineParts parts) {
  if (parts.host == nullptr) parts.host = parts.machine;
  if (!parts.now) parts.now = [] { return Clock::now(); };
  if (!parts.grammar_compiler && parts.tokenizer != nullptr)
    parts.grammar_compiler = [tokenizer = parts.tokenizer, vocab = parts.model->config().vocab] {
      return GrammarCompiler::Create(*tokenizer, vocab);
    };
  return parts;
}

RunnerParts RunnerPartsOf(const EngineParts& parts) {
  return {
      .model = parts.model,
      .cache = &parts.memory->cache,
      .workspace = &parts.memory->workspace,
      .exec = {.threads = &parts.memory->threads, .machine = parts.machine, .stream = parts.stream},
      .announcer = parts.followers};
}

}  // namespace

Result<std::unique_ptr<EngineCore>> EngineCore::Create(const EngineParts& given,
                                                       const Settings& settings,
                                                       const ModelKey& key) {
  EngineParts parts = given;
  if (!parts.memory) {
    LATTE_ASSIGN_OR_RETURN(
        LatentCache cache,
        LatentCache::Create(settings.cache_spec, settings.pages_of_rank(), parts.model->device()));
    LATTE_ASSIGN_OR_RETURN(parts.memory, CatchExhaustion([&]() -> Result<decltype(parts.memory)> {
                             return std::make_shared<RunnerMemory>(
                                 settings.options.threads, std::move(cache), parts.model->device());
                           }));
  }
  if (parts.followers != nullptr)
    LATTE_RETURN_IF_ERROR(CatchLostRanks([&] { parts.followers->Start(settings); }));
  LATTE_ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> core,
                         CatchExhaustion([&]() -> Result<std::unique_ptr<EngineCore>> {
                           std::unique_ptr<EngineCore> out(new EngineCore(parts, settings));
                           if (!parts.model->device().is_host())
                             out->runner_.Prepare(out->step_, PathsOf(settings),
                                                  settings.options.max_tokens);
                           return out;
                         }));
  std::unique_ptr<PrefixStore> store;
  if (!settings.options.cache_dir.empty()) {
    PrefixStoreOptions options;
    options.dir = settings.options.cache_dir;
    options.max_bytes = settings.options.cache_dir_bytes;
    Inbox* const inbox = &core->inbox_;
    LATTE_ASSIGN_OR_RETURN(
        store, PrefixStore::Open(options, {key, settings.cache_spec}, [inbox] { inbox->Wake(); }));
  }
  core->mover_ = std::make_unique<PageMover>(core->runner_, std::move(store));
  core->MakeDrafter();
  core->UpdateStats({}, 0);
  return core;
}

EngineCore::EngineCore(const EngineParts& parts, const Settings& settings)
    : parts_(Complete(parts)),
      settings_(settings),
      rules_{&parts.model->config(), &settings_, parts.tokenizer},
      memory_(parts.memory),
      pages_(CacheRules(settings)),
      step_(CapacityOf(settings, parts.followers)),
      runner_(RunnerPartsOf(parts), OptionsOfRunner(settings), step_.capacity()),
      scheduler_(OptionsOfScheduler(), pages_),
      draft_policy_(settings),
      streams_(parts.tokenizer),
      inbox_({settings.options.max_queued_requests, settings.options.max_queued_tokens}),
      grammars_(parts_.grammar_compiler, parts_.now, [this] { inbox_.Wake(); }),
      masks_(parts.model->config().vocab, parts_.now, [this] { inbox_.Wake(); }) {
  settings_.options.threads = threads().threads();
  // On another device Create measures the steps, and takes what they need.
  if (parts.model->device().is_host())
    memory_->workspace.Reserve(StepWorkspaceBytes(parts.model->config(), settings_.options));
}

SchedulerOptions EngineCore::OptionsOfScheduler() {
  SchedulerOptions out = SchedulerRules(settings_, parts_.model->config().mla);
  if (!settings_.options.cache_dir.empty())
    out.pages_on_disk = [this](const Sequence& s, int64_t first) {
      // One token is left to compute.
      const std::span<const int32_t> all_but_one(s.tokens.data(), s.tokens.size() - 1);
      return mover_->store()->KnownPages(s.spec.salt, all_but_one, first);
    };
  return out;
}

void EngineCore::MakeDrafter() {
  if (settings_.draft_tokens > 0 && settings_.options.drafter == "lookup")
    drafter_ = std::make_unique<LookupDrafter>();
  if (!settings_.drafts_by_mtp || !parts_.model->drafts()) return;
  const bool expanded = settings_.cache_spec.Has(StreamId::kKey);
  drafter_ = std::make_unique<MtpDrafter>(MtpDrafter::Parts{
      .runner = &runner_,
      .cache = &pages_,
      .threads = &threads(),
      .host = parts_.host,
      .add_page_ops = [this](latte::Step& step) { mover_->AddPageOps(pages_.TakeOps(), step); },
      .path = expanded ? MlaPath::kDecompressed : MlaPath::kAbsorbed,
      .layers = parts_.model->draft_layers()});
}

void EngineCore::ProposeDrafts() {
  if (!drafter_) return;
  std::vector<DraftJob> jobs;
  int64_t count = 0;
  for (const auto& [id, request] : requests_)
    for (const auto& output : request->outputs) {
      Sequence& s = output->sequence;
      if (s.state != SequenceState::kRunning || s.remain_len() != 1 || output->generated == 0)
        continue;
      if (output->grammar && output->grammar->state != AnswerGrammar::State::kNone)
        continue;  // its masks have been computed with other drafts
      const int64_t wanted = draft_policy_.Count(output->draft_record, output->generated);
      jobs.push_back({output.get(), scheduler_.ReserveDrafts(s, wanted)});
      count += jobs.back().count;
    }
  const Clock::time_point start = Clock::now();
  drafter_->Propose(jobs);
  draft_policy_.DraftsTook(SecondsSince(start), count);
}

Result<RequestId> EngineCore::Submit(Request request) {
  return CatchExhaustion([&]() -> Result<RequestId> {
    LATTE_ASSIGN_OR_RETURN(auto state, MakeRequestState(std::move(request), rules_));
    if (const Request& r = state->request; !r.grammar.empty()) {
      LATTE_ASSIGN_OR_RETURN(state->grammar,
                             grammars_.Start({*FindGrammarSyntax(r.grammar_syntax), r.grammar}));
    }
    return inbox_.Put(std::move(state));
  });
}

Status EngineCore::Step() {
  if (broken_) return tl::unexpected<Error>(*broken_);
  const Status status = CatchExhaustion([this] { return CatchLostRanks([&] { StepOnce(); }); });
  // The step was cut short between two decisions that belong together, such as the scheduler's and
  // that of its pages.
  if (!status) {
    broken_ = status.error();
    (void)CatchLostRanks([&] { runner_.Abandon(broken_->message); });
  }
  if (sink_ && !streams_.events().empty()) sink_(streams_.events());
  streams_.events().clear();
  return status;
}

void EngineCore::StepOnce() {
  const Clock::time_point start = Clock::now();
  forward_seconds_ = 0;
  DrainInbox();
  mover_->FinishLoads(scheduler_);
  EndLateMasks();
  ProposeDrafts();
  StepPlan plan = scheduler_.Plan();
  RecordAdmissions(plan);
  RunStep(plan);
  if (drafter_) drafter_->EndStep();
  runner_.FinishStep();
  more_to_do_ = !plan.empty() || !plan.preempted.empty() || !plan.admitted.empty();
  DropEndedRequests();
  SaveNewPages();
  UpdateStats(plan, SecondsSince(start));
}

void EngineCore::DrainInbox() {
  Inbox::Messages messages = inbox_.Take();
  for (auto& request : messages.requests) AddRequest(std::move(request));
  for (const RequestId id : messages.cancels) CancelRequest(id);
  AddCompiled();
}

void EngineCore::AddRequest(std::unique_ptr<RequestState> request) {
  Sequence& sequence = request->outputs.front()->sequence;
  sequence.spec.id = ++last_id_;
  RequestState* const state = request.get();
  requests_.emplace(state->id, std::move(request));
  if (state->grammar == nullptr)
    scheduler_.Add(sequence);
  else
    compiling_.push_back(state);
}

// Requests whose grammar is ready join the scheduler's queue; those whose grammar is unusable end.
void EngineCore::AddCompiled() {
  std::erase_if(compiling_, [this](RequestState* request) {
    Output& output = *request->outputs.front();
    if (output.ended()) return true;  // cancelled
    const bool done = request->grammar->done();
    const Status in_time = done ? Status() : grammars_.CheckTime(*request->grammar);
    if (!done && in_time) return false;
    const Status begun = done ? BeginGrammar(output) : in_time;
    if (begun)
      scheduler_.Add(output.sequence);
    else
      End(output, FinishReason::kError, begun.error());
    return true;
  });
}

void EngineCore::EndLateMasks() {
  for (const auto& [output, error] : masks_.Prepare(requests_))
    End(*output, FinishReason::kError, error);
}

void EngineCore::CancelRequest(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  for (const auto& output : found->second->outputs)
    if (!output->ended()) End(*output, FinishReason::kCancelled, {});
}

void EngineCore::End(Output& output, FinishReason reason, const Error& error) {
  Sequence& s = output.sequence;
  if (s.state == SequenceState::kWaiting && s.preemptions == 0)
    inbox_.LeftQueue(s.prompt_len);  // it was never admitted
  if (s.state == SequenceState::kLoading) mover_->DropLoads(s.spec.id);
  streams_.End(output, reason, error);
  Remove(output);
}

void EngineCore::Remove(Output& output) {
  if (drafter_) drafter_->Leave(output);
  scheduler_.Remove(output.sequence);
  some_ended_ = true;
}

// An output may end while the step's plan still points to it, so requests go at the end of a step.
void EngineCore::DropEndedRequests() {
  if (!std::exchange(some_ended_, false)) return;
  std::erase_if(requests_, [](const auto& one) { return one.second->ended(); });
}

void EngineCore::RecordAdmissions(const StepPlan& plan) {
  const std::lock_guard lock(stats_mutex_);
  for (const Sequence* s : plan.admitted) {
    inbox_.LeftQueue(s->prompt_len);
    stats_.prompt_tokens += s->prompt_len;
    RequestState& request = *s->output->state;
    request.admitted = Clock::now();
    request.queue_seconds = Seconds(request.admitted - request.submitted);
  }
}

void EngineCore::RunStep(StepPlan& plan) {
  step_.Clear();
  mover_->AddPageOps(plan.ops, step_);
  for (const SequenceStep& step : plan.steps) step_.AddChunk(step.chunk, settings_.sparse_from);
  if (drafter_) drafter_->Keep(plan, step_);
  // A drafter that writes cache rows runs steps of its own before anything is sampled: then the
  // logits are a step after them.
  const bool logits_follow = drafter_ && drafter_->WritesAfter(plan);
  if (!logits_follow) PlanLogits(plan);
  mover_->StartLoads(plan.loads);
  masks_.Start(plan);
  if (plan.tokens == 0) {
    if (!step_.empty()) runner_.Run(step_);
    return;
  }
  const Status computed = Compute();
  masks_.Wait(plan);
  if (!computed) return EndLargest(plan, computed.error());
  Computed(plan, logits_follow);
}

Status EngineCore::Compute() {
  const Clock::time_point start = Clock::now();
  const Status computed = CatchExhaustion([&]() -> Status {
    runner_.Run(step_);
    return {};
  });
  forward_seconds_ += SecondsSince(start);
  return computed;
}

void EngineCore::Computed(const StepPlan& plan, bool logits_follow) {
  scheduler_.Advance(plan);
  if (drafter_) drafter_->Computed(plan, logits_follow);
  if (logits_follow) {
    step_.Clear();
    PlanLogits(plan);
    if (!step_.empty()) runner_.Run(step_);
  }
  UseLogits();
  const bool generates = std::ranges::all_of(plan.steps, [](const SequenceStep& step) {
    return step.samples && step.chunk.count == step.drafts + 1;
  });
  if (generates) draft_policy_.StepTook(forward_seconds_, plan.tokens, std::ssize(plan.steps));
}

// No effect of the step has been kept, so the others compute their part again, without this one.
void EngineCore::EndLargest(const StepPlan& plan, const Error& error) {
  const auto largest = std::ranges::max_element(
      plan.steps, {}, [](const SequenceStep& step) { return step.chunk.count; });
  End(*largest->sequence->output, FinishReason::kError, error);
}

bool EngineCore::WaitForWork(std::chrono::steady_clock::time_point deadline) {
  return more_to_do_ || inbox_.Wait(deadline);
}

// Known prefixes reach the disk soon after they are computed, so that a process that is killed
// finds them again. A few pages per step: each is copied on this thread.
void EngineCore::SaveNewPages() {
  constexpr int kPagesPerStep = 2;
  for (const int32_t page : pages_.TakeNewPages()) unsaved_.push_back(page);
  for (int i = 0; i < kPagesPerStep && !unsaved_.empty(); ++i) {
    if (mover_->store() == nullptr || !mover_->store()->has_room()) return;
    const int32_t page = unsaved_.front();
    unsaved_.pop_front();
    if (pages_.IsInTree(page)) mover_->Save(page, pages_.PrefixOf(page));
  }
  if (!unsaved_.empty()) more_to_do_ = true;
}

Status EngineCore::SavePrefixes() {
  return CatchExhaustion([this] { return SaveAllPrefixes(); });
}

Status EngineCore::SaveAllPrefixes() {
  if (mover_->store() == nullptr) return {};
  const int64_t failed_before = mover_->store()->Stats().failed_saves;
  mover_->store()->Flush();  // pages that wait to be written take places in the queue
  // As many at once as the store's queue takes.
  constexpr size_t kPagesAtOnce = 32;
  const std::vector<int32_t> all = pages_.TreePages();
  for (size_t begin = 0; begin < all.size(); begin += kPagesAtOnce) {
    for (size_t i = begin; i < std::min(all.size(), begin + kPagesAtOnce); ++i)
      mover_->Save(all[i], pages_.PrefixOf(all[i]));
    mover_->store()->Flush();
  }
  const PrefixStoreStats stats = mover_->store()->Stats();
  if (const int64_t failed = stats.failed_saves - failed_before; failed > 0)
    return Fail(Code::kUnavailable, fmt::format("{} pages could not be saved, the last one so: {}",
                                                failed, stats.last_error));
  return {};
}

void EngineCore::UpdateStats(const StepPlan& plan, double seconds) {
  const std::lock_guard lock(stats_mutex_);
  stats_.waiting = scheduler_.waiting() + std::ssize(compiling_);
  stats_.running = scheduler_.running();
  stats_.pages_total = pages_.total_pages();
  stats_.pages_used = pages_.used_pages();
  stats_.pages_cached = pages_.cached_pages();
  stats_.page_bytes = settings_.cache_spec.bytes_per_page();
  stats_.page_tokens = settings_.options.page_tokens;
  if (!plan.steps.empty()) ++stats_.steps;
  stats_.requests_finished = streams_.finished();
  stats_.requests_failed = streams_.failed();
  stats_.requests_cancelled = streams_.cancelled();
  stats_.preemptions = scheduler_.preemptions();
  stats_.cached_tokens = cached_tokens_;
  stats_.disk_tokens = disk_tokens_;
  stats_.computed_tokens += plan.tokens;
  stats_.generated_tokens = streams_.generated();
  stats_.drafted_tokens = drafted_tokens_;
  stats_.accepted_tokens = accepted_tokens_;
  const MaskWorker::Counters masks = masks_.counters();
  stats_.masks = masks.masks;
  stats_.mask_seconds = masks.seconds;
  stats_.mask_wait_seconds = masks.wait_seconds;
  if (parts_.followers != nullptr) stats_.idle_tokens = parts_.followers->idle_tokens();
  stats_.step_seconds += seconds;
  stats_.forward_seconds += forward_seconds_;
}

EngineStats EngineCore::Stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

}  // namespace latte
