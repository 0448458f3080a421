#include "src/engine/engine_core.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/limits/out_of_memory.h"
#include "src/engine/run/f16_range.h"
#include "src/engine/schedule/scheduler_rules.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

// Logits are drawn from in blocks of rows: 64 rows of the largest vocabularies are 33 MB.
constexpr size_t kRowsPerBlock = 64;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Result<std::unique_ptr<EngineCore>> EngineCore::Create(const EngineParts& parts,
                                                       const Settings& settings,
                                                       const ModelKey& key) {
  LATTE_ASSIGN_OR_RETURN(LatentCache cache,
                         LatentCache::Create(settings.cache_spec, settings.pages));
  std::unique_ptr<EngineCore> core(new EngineCore(parts, settings, std::move(cache)));
  std::unique_ptr<PrefixStore> store;
  if (!settings.options.cache_dir.empty()) {
    PrefixStoreOptions options;
    options.dir = settings.options.cache_dir;
    options.max_bytes = settings.options.cache_dir_bytes;
    Inbox* const inbox = &core->inbox_;
    LATTE_ASSIGN_OR_RETURN(
        store, PrefixStore::Open(options, {key, settings.cache_spec}, [inbox] { inbox->Wake(); }));
  }
  core->mover_ = std::make_unique<PageMover>(core->cache_, std::move(store));
  core->UpdateStats({}, 0);
  return core;
}

EngineCore::EngineCore(const EngineParts& parts, const Settings& settings, LatentCache cache)
    : parts_(parts),
      settings_(settings),
      rules_{&parts.model->config(), &settings_, parts.tokenizer},
      threads_(settings.options.threads),
      cache_(std::move(cache)),
      pages_(CacheRules(settings)),
      runner_(*parts.model, cache_, workspace_, Exec{&threads_, parts.machine},
              RunnerOptions{settings.dtype, settings.options.prefill_workspace_tokens,
                            settings.options.int8_activations}),
      scheduler_(Rules(), pages_),
      answers_(rules_),
      inbox_(settings.options.max_queued_requests, settings.options.max_queued_tokens) {
  settings_.options.threads = threads_.threads();
}

SchedulerOptions EngineCore::Rules() {
  SchedulerOptions out = SchedulerRules(settings_, parts_.model->config().mla);
  if (!settings_.options.cache_dir.empty())
    out.pages_on_disk = [this](const Sequence& s, int64_t first) {
      // One token is left to compute.
      const std::span<const int32_t> all_but_one(s.tokens.data(), s.tokens.size() - 1);
      return mover_->store()->KnownPages(s.spec.salt, all_but_one, first);
    };
  return out;
}

Result<RequestId> EngineCore::Submit(Request request) {
  LATTE_ASSIGN_OR_RETURN(Submission submission, Prepare(std::move(request), rules_));
  return inbox_.Put(std::move(submission));
}

Status EngineCore::Step() {
  if (broken_) return tl::unexpected<Error>(*broken_);
  Status status = CatchExhaustion([this] { return StepOnce(); });
  // Memory ran out between two decisions that belong together, as that of the scheduler and that of
  // its pages.
  if (!status) broken_ = status.error();
  if (sink_ && !answers_.events().empty()) sink_(answers_.events());
  answers_.events().clear();
  return status;
}

Status EngineCore::StepOnce() {
  const Clock::time_point start = Clock::now();
  forward_seconds_ = 0;
  ReadMail();
  mover_->Finish(scheduler_);
  const StepPlan plan = scheduler_.Plan();
  NoteAdmissions(plan);
  mover_->Do(plan.ops);
  mover_->Begin(plan.loads, scheduler_);
  const int64_t global = global_tokens_ ? global_tokens_(plan.tokens) : plan.tokens;
  if (global > 0) Compute(plan, global);
  more_to_do_ = !plan.empty() || !plan.preempted.empty() || !plan.admitted.empty();
  UpdateStats(plan, SecondsSince(start));
  return {};
}

void EngineCore::ReadMail() {
  Inbox::Mail mail = inbox_.Take();
  for (Submission& submission : mail.submissions) Enter(std::move(submission));
  for (const RequestId id : mail.cancels) CancelNow(id);
}

void EngineCore::Enter(Submission submission) {
  const Request& request = submission.request;
  SequenceSpec spec;
  spec.id = ++last_id_;
  spec.salt = request.cache_salt;
  spec.max_len = submission.max_len;
  spec.priority = request.priority;
  spec.answers = request.n;
  spec.reuses_prefix = request.prompt_logprobs < 0;
  std::vector<int32_t> prompt = submission.prompt;
  const SequenceId id = spec.id;
  answers_.Add(id, std::move(submission));
  scheduler_.Add(std::move(spec), std::move(prompt));
}

void EngineCore::CancelNow(RequestId id) {
  for (const SequenceId sequence : answers_.Of(id)) End(sequence, FinishReason::kCancelled, {});
}

void EngineCore::End(SequenceId id, FinishReason reason, const Error& error) {
  const Sequence& s = *scheduler_.Find(id);
  if (s.state == SequenceState::kWaiting && s.preemptions == 0)
    inbox_.LeftQueue(s.prompt_len);  // it was never admitted
  answers_.End(id, reason, error, s.spec.answers);
  scheduler_.Remove(id);
}

void EngineCore::NoteAdmissions(const StepPlan& plan) {
  const std::lock_guard lock(stats_mutex_);
  for (const SequenceId id : plan.admitted) {
    const Sequence& s = *scheduler_.Find(id);
    inbox_.LeftQueue(s.prompt_len);
    stats_.prompt_tokens += s.prompt_len;
  }
}

void EngineCore::Compute(const StepPlan& plan, int64_t global_tokens) {
  std::vector<SequenceWork> work;
  for (const SequenceStep& step : plan.steps)
    work.push_back({step.tokens(), step.begin, step.path, step.sequence->pages});
  const Clock::time_point start = Clock::now();
  const Status computed = CatchExhaustion([&]() -> Status {
    hidden_ = runner_.Forward(work, global_tokens);
    return {};
  });
  forward_seconds_ += SecondsSince(start);
  if (!computed) return EndLargest(plan, computed.error());
  scheduler_.Advance(plan);
  TellPromptLogprobs(plan);
  DrawTokens(plan);
}

// Nothing of the step has happened, so that the others compute their part again, without this one.
void EngineCore::EndLargest(const StepPlan& plan, const Error& error) {
  const auto largest = std::ranges::max_element(plan.steps, {}, &SequenceStep::count);
  if (largest != plan.steps.end()) End(largest->id, FinishReason::kError, error);
}

// Logits of the tokens of a prompt tell the logprobs of the tokens after them.
void EngineCore::TellPromptLogprobs(const StepPlan& plan) {
  int64_t row = 0;
  for (const SequenceStep& step : plan.steps) {
    const Answer& answer = answers_.At(step.id);
    if (answer.request().prompt_logprobs >= 0 && answer.generated == 0) {
      const Status told = CatchExhaustion([&] { return TellPromptLogprobs(step, row); });
      if (!told) End(step.id, FinishReason::kError, told.error());
    }
    row += step.count;
  }
}

// `first_row`: of the step in the hidden states.
Status EngineCore::TellPromptLogprobs(const SequenceStep& step, int64_t first_row) {
  Answer& answer = answers_.At(step.id);
  const int64_t last = std::min(step.begin + step.count, step.sequence->prompt_len - 1);
  // What a preempted sequence computes again was told before.
  int64_t at = std::max(step.begin, static_cast<int64_t>(answer.prompt_logprobs.size()));
  while (at < last) {
    const int64_t end = std::min(last, at + static_cast<int64_t>(kRowsPerBlock));
    std::vector<int64_t> rows;
    for (int64_t i = at; i < end; ++i) rows.push_back(first_row + i - step.begin);
    const TensorView logits = runner_.LogitsOf(rows);
    for (int64_t i = at; i < end; ++i) {
      const std::span<const float> one(logits.Row<float>(i - at),
                                       static_cast<size_t>(logits.shape[1]));
      LATTE_ASSIGN_OR_RETURN(TokenLogprobs told,
                             Logprobs(one, step.sequence->tokens[static_cast<size_t>(i) + 1],
                                      answer.request().prompt_logprobs));
      answer.prompt_logprobs.push_back(std::move(told));
    }
    at = end;
  }
  return {};
}

void EngineCore::DrawTokens(const StepPlan& plan) {
  std::vector<Drawing> drawings;
  int64_t row = 0;
  for (const SequenceStep& step : plan.steps) {
    row += step.count;
    if (!step.draws || scheduler_.Find(step.id) == nullptr) continue;
    NoteFirstDraw(*step.sequence);
    if (answers_.At(step.id).request().stop.max_tokens == 0) {
      End(step.id, FinishReason::kLength, {});
      continue;
    }
    drawings.push_back({step.id, row - 1});
    // All answers of a request draw their first token from the same row.
    for (const SequenceId fork : ForkAnswers(step)) drawings.push_back({fork, row - 1});
  }
  for (size_t begin = 0; begin < drawings.size(); begin += kRowsPerBlock) {
    const std::span block =
        std::span(drawings).subspan(begin, std::min(kRowsPerBlock, drawings.size() - begin));
    const Result<std::vector<Result<Drawn>>> drawn =
        CatchExhaustion([&] { return DrawBlock(block); });
    for (size_t i = 0; i < block.size(); ++i)
      Settle(block[i].id, drawn ? (*drawn)[i] : tl::unexpected<Error>(drawn.error()));
  }
}

// How much of the prompt was found is known for certain when all of it is computed.
void EngineCore::NoteFirstDraw(const Sequence& s) {
  Answer& answer = answers_.At(s.spec.id);
  if (answer.generated > 0) return;
  answer.cached_tokens = s.shared_len;
  cached_tokens_ += s.shared_len;
  disk_tokens_ += s.loaded_len;
}

std::vector<SequenceId> EngineCore::ForkAnswers(const SequenceStep& step) {
  std::vector<SequenceId> forks;
  while (step.sequence->spec.answers > 1) {
    forks.push_back(++last_id_);
    scheduler_.Fork(step.sequence->spec.id, last_id_);
    answers_.Fork(step.sequence->spec.id, last_id_, static_cast<int>(forks.size()));
  }
  return forks;
}

Status EngineCore::CheckRow(int64_t row) const {
  const std::span<const float> h(hidden_.Row<float>(row), static_cast<size_t>(hidden_.shape[1]));
  if (!FindOverflow(settings_.dtype, h)) return {};
  return tl::unexpected(OverflowError("this sequence"));
}

Result<std::vector<Result<Drawn>>> EngineCore::DrawBlock(std::span<const Drawing> block) {
  std::vector<int64_t> rows;
  for (const Drawing& d : block)
    if (rows.empty() || rows.back() != d.row) rows.push_back(d.row);
  const Clock::time_point start = Clock::now();
  const TensorView logits = runner_.LogitsOf(rows);
  forward_seconds_ += SecondsSince(start);

  const auto vocab = static_cast<size_t>(logits.shape[1]);
  std::vector<Draw> draws;
  int64_t at = -1;
  for (const Drawing& d : block) {
    if (at < 0 || rows[static_cast<size_t>(at)] != d.row) ++at;
    const Answer& answer = answers_.At(d.id);
    Draw draw;
    draw.logits = {logits.Row<float>(at), vocab};
    draw.params = &answer.params;
    draw.history = &answer.history;
    draw.banned = answers_.Banned(answer);
    draw.position = scheduler_.Find(d.id)->length();
    draw.logprobs = answer.request().logprobs;
    draw.isa = parts_.machine->isa;
    draws.push_back(draw);
  }
  std::vector<Result<Drawn>> drawn = SampleAll(draws, threads_);
  for (size_t i = 0; i < block.size(); ++i)
    if (const Status row = CheckRow(block[i].row); !row)
      drawn[i] = tl::unexpected<Error>(row.error());
  return drawn;
}

void EngineCore::Settle(SequenceId id, const Result<Drawn>& drawn) {
  if (!drawn) {
    End(id, FinishReason::kError, drawn.error());
    return;
  }
  const int64_t length = scheduler_.Find(id)->length() + 1;
  if (answers_.Accept(id, *drawn, length))
    scheduler_.Remove(id);
  else
    scheduler_.Append(id, drawn->token);
}

bool EngineCore::WaitForWork(std::chrono::steady_clock::time_point deadline) {
  return more_to_do_ || inbox_.Wait(deadline);
}

Status EngineCore::SavePrefixes() {
  if (mover_->store() == nullptr) return {};
  const int64_t failed_before = mover_->store()->Stats().failed_saves;
  mover_->store()->Flush();  // what waits to be written takes places in the queue
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
  stats_.waiting = scheduler_.waiting();
  stats_.running = scheduler_.running();
  stats_.pages_total = pages_.total_pages();
  stats_.pages_used = pages_.used_pages();
  stats_.pages_cached = pages_.cached_pages();
  stats_.page_bytes = settings_.cache_spec.bytes_per_page();
  stats_.page_tokens = settings_.options.page_tokens;
  if (!plan.steps.empty()) ++stats_.steps;
  stats_.requests_finished = answers_.finished();
  stats_.requests_failed = answers_.failed();
  stats_.requests_cancelled = answers_.cancelled();
  stats_.preemptions = scheduler_.preemptions();
  stats_.cached_tokens = cached_tokens_;
  stats_.disk_tokens = disk_tokens_;
  stats_.computed_tokens += plan.tokens;
  stats_.generated_tokens = answers_.generated();
  stats_.step_seconds += seconds;
  stats_.forward_seconds += forward_seconds_;
}

EngineStats EngineCore::Stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

}  // namespace latte
