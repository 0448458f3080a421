// How a step ends: hidden states to tokens, tokens to events.
#include <algorithm>

#include "src/base/limits/out_of_memory.h"
#include "src/base/timer.h"
#include "src/engine/core/engine_core.h"
#include "src/engine/grammar/answer_grammar.h"
#include "src/engine/step/f16_overflow.h"

namespace latte {
namespace {

using Clock = std::chrono::steady_clock;

// Logits are computed in blocks of rows: 64 rows of the largest vocabularies take 33 MB.
constexpr int64_t kRowsPerBlock = 64;

}  // namespace

std::vector<EngineCore::Sampling> EngineCore::PlanSampling(const StepPlan& plan) {
  std::vector<Sampling> out;
  int64_t row = 0;
  for (const SequenceStep& step : plan.steps) {
    row += step.chunk.count;
    Output& output = *step.sequence->output;
    if (!step.samples || output.ended()) continue;
    RecordFirstToken(output);
    if (output.request().stop.max_tokens == 0) {
      End(output, FinishReason::kLength, {});
      continue;
    }
    output.drafted += step.drafts;
    drafted_tokens_ += step.drafts;
    const int64_t first = row - 1 - step.drafts;
    out.push_back({&output, first, step.drafts + 1, output.accepted});
    // All outputs of a request sample their first token from the same row.
    while (output.sequence.spec.outputs > 1) {
      Output& fork = output.state->Fork(++last_id_);
      scheduler_.Fork(output.sequence, fork.sequence);
      ForkGrammar(fork);
      out.push_back({&fork, first});
    }
  }
  return out;
}

void EngineCore::SampleTokens(const StepPlan& plan) {
  const std::vector<Sampling> all = PlanSampling(plan);
  for (auto begin = all.begin(); begin != all.end();) {
    auto end = begin;
    for (int64_t rows = 0; end != all.end() && rows + end->rows <= kRowsPerBlock; ++end)
      rows += end->rows;
    SampleBlock({begin, end});
    begin = end;
  }
  for (const Sampling& s : all) StepMasks::Sampled(*s.output);
  for (const Sampling& s : all)
    if (s.rows > 1)
      draft_policy_.Record(s.output->draft_record, s.output->generated, s.rows - 1,
                           s.output->accepted - s.accepted_before);
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

Status EngineCore::CheckRow(int64_t row) {
  const TensorView h = runner_.ToHost(hidden_.Slice(0, row, row + 1));
  if (!FirstNotFinite({h.Ptr<float>(), static_cast<size_t>(h.elements())})) return {};
  return F16Overflow("this sequence");
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
  std::vector<int64_t> rows;
  std::vector<Sampling> round(block.begin(), block.end());
  for (Sampling& s : round) {
    // Forks share a row.
    const bool shared = !rows.empty() && rows.back() == s.row;
    s.in_logits = std::ssize(rows) - (shared ? 1 : 0);
    for (int64_t i = shared ? 1 : 0; i < s.rows; ++i) rows.push_back(s.row + i);
  }
  const Clock::time_point start = Clock::now();
  const Result<TensorView> logits =
      CatchExhaustion([&]() -> Result<TensorView> { return runner_.LogitsOf(rows); });
  forward_seconds_ += SecondsSince(start);
  while (!round.empty()) {
    const Result<std::vector<Result<SampledToken>>> sampled =
        logits ? CatchExhaustion([&] { return SampleRound(round, *logits); })
               : tl::unexpected<Error>(logits.error());
    std::vector<Sampling> next;
    for (size_t i = 0; i < round.size(); ++i) {
      Sampling& s = round[i];
      if (!ApplyToken(s, sampled ? (*sampled)[i] : tl::unexpected(sampled.error()))) continue;
      ++s.row;
      ++s.in_logits;
      ++s.mask_row;
      if (drafter_) drafter_->Accepted(*s.output, hidden_.Slice(0, s.row, s.row + 1));
      next.push_back(s);
    }
    round = std::move(next);
  }
}

Result<std::vector<Result<SampledToken>>> EngineCore::SampleRound(std::span<const Sampling> round,
                                                                  const TensorView& logits) {
  const auto vocab = static_cast<size_t>(logits.shape[1]);
  std::vector<SampleInput> inputs;
  for (const Sampling& s : round)
    inputs.push_back(InputOf(s, {logits.Row<float>(s.in_logits), vocab}));
  std::vector<Result<SampledToken>> sampled = SampleAll(inputs, threads_);
  for (size_t i = 0; i < round.size(); ++i) {
    const Output& output = *round[i].output;
    if (output.grammar && !output.grammar->status)
      sampled[i] = tl::unexpected<Error>(output.grammar->status.error());
    else if (output.grammar && round[i].mask_row >= output.grammar->rows)
      sampled[i] = Internal("the grammar refuses a draft that its mask allows");
    if (const Status row = CheckRow(round[i].row); !row)
      sampled[i] = tl::unexpected<Error>(row.error());
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
