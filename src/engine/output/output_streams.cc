#include "src/engine/output/output_streams.h"

#include <algorithm>
#include <utility>

namespace latte {
namespace {

bool IsStopToken(const Output& output, int32_t token) {
  const std::vector<int32_t>& ids = output.state->stop_token_ids;
  return std::find(ids.begin(), ids.end(), token) != ids.end();
}

}  // namespace

std::span<const int32_t> BannedTokens(const Output& output) {
  if (output.generated >= output.request().stop.min_tokens) return {};
  return output.state->stop_token_ids;
}

std::string OutputStreams::EchoText(const Output& output) const {
  const std::string& prompt = output.request().prompt;
  if (!prompt.empty() || tokenizer_ == nullptr) return prompt;
  return tokenizer_->Decode(output.prompt()).value_or("");
}

TokenEvent OutputStreams::NewEvent(Output& output) {
  TokenEvent event;
  event.request = output.state->id;
  event.user_data = output.request().user_data;
  event.choice = output.choice;
  event.prompt_tokens = output.sequence.prompt_len;
  event.cached_tokens = output.cached_tokens;
  event.queue_seconds = output.state->queue_seconds;
  event.prefill_seconds = output.state->prefill_seconds;
  event.generated_tokens = output.generated;
  event.drafted_tokens = output.drafted;
  event.accepted_tokens = output.accepted;
  event.prompt_logprobs = std::exchange(output.prompt_logprobs, {});
  return event;
}

bool OutputStreams::Accept(Output& output, const SampledToken& sampled, int64_t length) {
  if (IsStopToken(output, sampled.token)) {
    End(output, FinishReason::kStop, {});
    return true;
  }
  const StopConditions& stop = output.request().stop;
  const bool first = output.generated == 0;
  ++output.generated;
  ++generated_;
  if (HasPenalties(output.params)) output.history.AddGenerated(sampled.token);

  TokenEvent event = NewEvent(output);
  event.token = sampled.token;
  event.logprobs = sampled.logprobs;
  if (first && output.request().echo) event.text = EchoText(output);
  bool stopped = false;
  const auto add = [&](AnswerText::Step step) {
    event.text += step.text;
    stopped = step.stopped;
    event.stop_string = std::move(step.stop_string);
  };
  if (output.text) add(output.text->Push(sampled.token, output.generated >= stop.min_tokens));
  const bool full = output.generated >= stop.max_tokens || length >= output.sequence.spec.max_len;
  if (stopped || full) {
    if (!stopped && output.text) add(output.text->Flush());
    event.finish = stopped ? FinishReason::kStop : FinishReason::kLength;
    ++finished_;
  }
  events_.push_back(std::move(event));
  return stopped || full;
}

void OutputStreams::End(Output& output, FinishReason reason, const Error& error) {
  const int outputs = output.sequence.spec.outputs;
  for (int i = 0; i < outputs; ++i) {
    TokenEvent event = NewEvent(output);
    event.choice = output.choice + i;
    if (output.generated == 0 && output.request().echo && reason != FinishReason::kError)
      event.text = EchoText(output);
    if (output.text && i == 0) {
      AnswerText::Step rest = output.text->Flush();
      event.text += rest.text;
      if (reason == FinishReason::kStop) event.stop_string = std::move(rest.stop_string);
    }
    event.finish = reason;
    event.error = error;
    events_.push_back(std::move(event));
  }
  finished_ += outputs;
  if (reason == FinishReason::kError) failed_ += outputs;
  if (reason == FinishReason::kCancelled) cancelled_ += outputs;
}

}  // namespace latte
