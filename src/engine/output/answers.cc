#include "src/engine/output/answers.h"

#include <algorithm>

#include "src/base/check.h"
#include "src/base/random.h"

namespace latte {
namespace {

uint64_t SeedOfChoice(uint64_t seed, int choice) {
  return choice == 0 ? seed : Mix64(seed ^ Mix64(static_cast<uint64_t>(choice)));
}

bool HasPenalties(const SamplingParams& p) {
  return p.repetition_penalty != 1 || p.presence_penalty != 0 || p.frequency_penalty != 0;
}

}  // namespace

void Answers::Add(SequenceId id, Submission submission) {
  Answer answer;
  answer.params = submission.request.sampling;
  if (HasPenalties(answer.params)) answer.history.AddPrompt(submission.prompt);
  if (rules_.tokenizer != nullptr)
    answer.text.emplace(*rules_.tokenizer, submission.request.stop.strings,
                        submission.request.keep_special);
  answer.submission = std::make_shared<const Submission>(std::move(submission));
  const bool added = answers_.emplace(id, std::move(answer)).second;
  LATTE_CHECK(added, "sequence {} was there", id);
}

void Answers::Fork(SequenceId id, SequenceId copy, int choice) {
  Answer answer = At(id);
  answer.choice = choice;
  answer.params.seed = SeedOfChoice(answer.request().sampling.seed, choice);
  answers_.emplace(copy, std::move(answer));
}

Answer& Answers::At(SequenceId id) {
  const auto found = answers_.find(id);
  LATTE_CHECK(found != answers_.end(), "no answer {}", id);
  return found->second;
}

std::vector<SequenceId> Answers::Of(RequestId id) const {
  std::vector<SequenceId> out;
  for (const auto& [sequence, answer] : answers_)
    if (answer.id() == id) out.push_back(sequence);
  return out;
}

std::span<const int32_t> Answers::Banned(const Answer& answer) const {
  const StopConditions& stop = answer.request().stop;
  if (answer.generated >= stop.min_tokens) return {};
  return answer.submission->ends;
}

bool Answers::EndsBy(const Answer& answer, int32_t token) const {
  const std::vector<int32_t>& ends = answer.submission->ends;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

TokenEvent Answers::NewEvent(Answer& answer) {
  TokenEvent event;
  event.request = answer.id();
  event.user_data = answer.request().user_data;
  event.choice = answer.choice;
  event.prompt_tokens = static_cast<int64_t>(answer.submission->prompt.size());
  event.cached_tokens = answer.cached_tokens;
  event.generated_tokens = answer.generated;
  event.prompt_logprobs = std::exchange(answer.prompt_logprobs, {});
  return event;
}

bool Answers::Accept(SequenceId id, const Drawn& drawn, int64_t length) {
  Answer& answer = At(id);
  if (EndsBy(answer, drawn.token)) {
    End(id, FinishReason::kStop, {});
    return true;
  }
  const StopConditions& stop = answer.request().stop;
  const bool first = answer.generated == 0;
  ++answer.generated;
  ++generated_;
  if (HasPenalties(answer.params)) answer.history.AddGenerated(drawn.token);

  TokenEvent event = NewEvent(answer);
  event.token = drawn.token;
  event.logprobs = drawn.logprobs;
  if (first && answer.request().echo) event.text = answer.submission->EchoText(rules_.tokenizer);
  bool stopped = false;
  if (answer.text) {
    const AnswerText::Step piece =
        answer.text->Push(drawn.token, answer.generated >= stop.min_tokens);
    event.text += piece.text;
    stopped = piece.stopped;
  }
  const bool full = answer.generated >= stop.max_tokens || length >= answer.submission->max_len;
  if (!stopped && !full) {
    events_.push_back(std::move(event));
    return false;
  }
  if (!stopped && answer.text) event.text += answer.text->Flush();
  event.finish = stopped ? FinishReason::kStop : FinishReason::kLength;
  Finish(id, std::move(event));
  return true;
}

void Answers::End(SequenceId id, FinishReason reason, const Error& error, int unforked) {
  Answer& answer = At(id);
  for (int i = 0; i < unforked; ++i) {
    TokenEvent event = NewEvent(answer);
    event.choice = answer.choice + i;
    if (answer.generated == 0 && answer.request().echo && reason != FinishReason::kError)
      event.text = answer.submission->EchoText(rules_.tokenizer);
    if (answer.text && i == 0) event.text += answer.text->Flush();
    event.finish = reason;
    event.error = error;
    if (i + 1 < unforked)
      events_.push_back(std::move(event));
    else
      Finish(id, std::move(event));
  }
  finished_ += unforked - 1;
  if (reason == FinishReason::kError) failed_ += unforked;
  if (reason == FinishReason::kCancelled) cancelled_ += unforked;
}

void Answers::Finish(SequenceId id, TokenEvent event) {
  events_.push_back(std::move(event));
  answers_.erase(id);
  ++finished_;
}

}  // namespace latte
