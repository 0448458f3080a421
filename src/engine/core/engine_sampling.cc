// How a step ends: hidden states to tokens, tokens to events.
#include <algorithm>

#include "src/base/limits/out_of_memory.h"
#include "src/base/timer.h"
#include "src/engine/core/engine_core.h"
#include "src/engine/core/f16_overflow.h"
#include "src/engine/core/prompt_logprobs.h"
#include "src/engine/grammar/answer_grammar.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// The rows whose logits the step is to compute: known before it runs, so that all ranks learn of
// them at once.
void EngineCore::PlanLogits(const StepPlan& plan) {
  PlanPromptLogits(plan);
  PlanSampling(plan);
}

// The logits of a prompt's tokens give the logprobs of the tokens after them.
void EngineCore::PlanPromptLogits(const StepPlan& plan) {
  prompt_blocks_.clear();
  int64_t row = 0;
  for (const SequenceStep& step : plan.steps) {
    Output& output = *step.sequence->output;
    const PromptRows wanted = WantedPromptRows(step.chunk, output);
    std::vector<int64_t> rows;
    for (int64_t i = wanted.begin; i < wanted.end; ++i)
      rows.push_back(row + i - step.chunk.cached_len);
    const int64_t before = step_.logit_blocks();
    step_.AddLogits(rows);
    if (!rows.empty())
      prompt_blocks_.push_back({&output, wanted.begin, step_.logit_blocks() - before});
    row += step.chunk.count;
  }
}

// Changes nothing but the plan.
void EngineCore::PlanSampling(const StepPlan& plan) {
  samplings_.clear();
  sampling_blocks_.clear();
  int64_t row = 0;
  for (const SequenceStep& step : plan.steps) {
    row += step.chunk.count;
    Output& output = *step.sequence->output;
    if (!step.samples) continue;
    if (output.request().stop.max_tokens == 0) {
      samplings_.push_back({.step = &step, .output = &output, .rows = 0});
      continue;
    }
    const int64_t first = row - 1 - step.drafts;
    samplings_.push_back({.step = &step,
                          .output = &output,
                          .row = first,
                          .rows = step.drafts + 1,
                          .accepted_before = output.accepted});
    // All outputs of a request sample their first token from the same row.
    for (int fork = 1; fork < output.sequence.spec.outputs; ++fork)
      samplings_.push_back({.step = &step, .output = &output, .row = first, .forks = true});
  }
  for (size_t begin = 0; begin < samplings_.size();) {
    size_t end = begin;
    for (int64_t rows = 0;
         end < samplings_.size() && rows + samplings_[end].rows <= kLogitBlockRows; ++end)
      rows += samplings_[end].rows;
    AddSamplingBlock(std::span(samplings_).subspan(begin, end - begin));
    sampling_blocks_.push_back({begin, end});
    begin = end;
  }
}

void EngineCore::AddSamplingBlock(std::span<Sampling> block) {
  std::vector<int64_t> rows;
  for (Sampling& s : block) {
    const bool shared = s.forks && !rows.empty() && rows.back() == s.row;
    s.in_block = std::ssize(rows) - (shared ? 1 : 0);
    for (int64_t i = shared ? 1 : 0; i < s.rows; ++i) rows.push_back(s.row + i);
  }
  step_.AddLogits(rows);
}

// Every block is taken, as all ranks compute it, whatever becomes of its answers.
void EngineCore::UseLogits() {
  for (const PromptBlock& prompt : prompt_blocks_) EmitPromptLogprobs(prompt);
  BeginSampling();
  for (const SamplingBlock& block : sampling_blocks_)
    SampleBlock(
        std::span<const Sampling>(samplings_).subspan(block.begin, block.end - block.begin));
  for (const Sampling& s : samplings_)
    if (s.output != nullptr) StepMasks::Sampled(*s.output);
  for (const Sampling& s : samplings_)
    if (s.output != nullptr && s.rows > 1)
      draft_policy_.Record(s.output->draft_record, s.output->generated, s.rows - 1,
                           s.output->accepted - s.accepted_before);
}

Result<StepLogits> EngineCore::NextLogits() {
  const Clock::time_point start = Clock::now();
  const Result<StepLogits> out =
      CatchExhaustion([&]() -> Result<StepLogits> { return runner_.NextLogits(); });
  forward_seconds_ += SecondsSince(start);
  return out;
}

void EngineCore::EmitPromptLogprobs(const PromptBlock& prompt) {
  Output& output = *prompt.output;
  int64_t first = prompt.first;
  for (int64_t i = 0; i < prompt.blocks; ++i) {
    const Result<StepLogits> block = NextLogits();
    if (output.ended()) continue;
    const Status emitted = block ? CatchExhaustion([&] {
      return AddPromptLogprobs(first, block->logits, *parts_.host, output);
    })
                                 : tl::unexpected<Error>(block.error());
    if (!emitted) End(output, FinishReason::kError, emitted.error());
    first += block ? block->logits.shape[0] : 0;
  }
}

// Makes the forks, and drops what has ended by now or waits for its mask.
void EngineCore::BeginSampling() {
  for (Sampling& s : samplings_) {
    Output& output = *s.output;
    if (output.ended() || !s.step->samples) {
      s.output = nullptr;
    } else if (s.forks) {
      Output& fork = output.state->Fork(++last_id_);
      scheduler_.Fork(output.sequence, fork.sequence);
      ForkGrammar(fork);
      if (drafter_) drafter_->Forked(fork);
      s.output = &fork;
    } else {
      RecordFirstToken(output);
      output.drafted += std::max<int64_t>(s.rows - 1, 0);
      drafted_tokens_ += std::max<int64_t>(s.rows - 1, 0);
      if (s.rows > 0) continue;
      End(output, FinishReason::kLength, {});
      s.output = nullptr;
    }
  }
}

// How much of the prompt was found is certain only when all of it is computed.
void EngineCore::RecordFirstToken(Output& output) {
  if (output.generated > 0) return;
  RequestState& request = *output.state;
  request.prefill_seconds = SecondsSince(request.admitted);
  output.cached_tokens = output.sequence.shared_len;
  cached_tokens_ += output.sequence.shared_len;
  disk_tokens_ += output.sequence.loaded_len;
}

SampleInput EngineCore::InputOf(const Sampling& s, std::span<const float> logits) const {
  const Output& output = *s.output;
  SampleInput input;
  input.logits = logits;
  input.params = &output.params;
  input.history = &output.history;
  input.banned = BannedTokens(output);
  if (output.grammar && output.grammar->status && s.mask_row < output.grammar->rows)
    input.allowed = output.grammar->Mask(s.mask_row);
  input.position = output.sequence.length();
  input.logprobs = output.request().logprobs;
  input.machine = parts_.host;
  return input;
}

// Round by round, a token of every output: a draft that was right gives a row for the next round.
// So a token is sampled from the same logits and in the same state as without drafts.
void EngineCore::SampleBlock(std::span<const Sampling> block) {
  std::vector<Sampling> round;
  int64_t rows = 0;
  for (const Sampling& s : block) {
    rows += s.rows;
    if (s.output != nullptr) round.push_back(s);
  }
  if (rows == 0) return;  // no logits either
  const Result<StepLogits> logits = NextLogits();
  while (!round.empty()) {
    const Result<std::vector<Result<SampledToken>>> sampled =
        logits ? CatchExhaustion([&] { return SampleRound(round, *logits); })
               : tl::unexpected<Error>(logits.error());
    std::vector<Sampling> next;
    for (size_t i = 0; i < round.size(); ++i) {
      Sampling& s = round[i];
      if (!ApplyToken(s, sampled ? (*sampled)[i] : tl::unexpected(sampled.error()))) continue;
      ++s.row;
      ++s.in_block;
      ++s.mask_row;
      if (drafter_) drafter_->Accepted(*s.output, s.row);
      next.push_back(s);
    }
    round = std::move(next);
  }
}

Result<std::vector<Result<SampledToken>>> EngineCore::SampleRound(std::span<const Sampling> round,
                                                                  const StepLogits& block) {
  const auto vocab = static_cast<size_t>(block.logits.shape[1]);
  std::vector<SampleInput> inputs;
  for (const Sampling& s : round)
    inputs.push_back(InputOf(s, {block.logits.Row<float>(s.in_block), vocab}));
  std::vector<Result<SampledToken>> sampled = SampleAll(inputs, threads());
  for (size_t i = 0; i < round.size(); ++i) {
    const Output& output = *round[i].output;
    if (output.grammar && !output.grammar->status)
      sampled[i] = tl::unexpected<Error>(output.grammar->status.error());
    else if (output.grammar && round[i].mask_row >= output.grammar->rows)
      sampled[i] = Internal("the grammar refuses a draft that its mask allows");
    if (block.finite[static_cast<size_t>(round[i].in_block)] == 0)
      sampled[i] = F16Overflow("this sequence");
  }
  return sampled;
}

// Returns whether the token after it can be sampled in the same step.
bool EngineCore::ApplyToken(const Sampling& sampling, const Result<SampledToken>& sampled) {
  Output& output = *sampling.output;
  AnswerGrammar* const grammar = output.grammar.get();
  if (!sampled) {
    // Where the answer is complete and no stop token may follow, nothing can.
    if (grammar != nullptr && grammar->status && sampling.mask_row < grammar->rows &&
        grammar->completed[static_cast<size_t>(sampling.mask_row)])
      End(output, FinishReason::kStop, {});
    else
      End(output, FinishReason::kError, sampled.error());
    return false;
  }
  if (grammar != nullptr) grammar->accepted.push_back(sampled->token);
  Sequence& s = output.sequence;
  if (!s.drafts.empty() && s.drafts.front() == sampled->token) {
    ++output.accepted;
    ++accepted_tokens_;
  }
  if (!streams_.Accept(output, *sampled, s.length() + 1))
    return scheduler_.Append(s, sampled->token);
  Remove(output);
  return false;
}

}  // namespace latte
