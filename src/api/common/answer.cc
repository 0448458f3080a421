#include "src/api/common/answer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/check.h"

namespace latte {
namespace {

void Append(const ApiPiece& more, ApiPiece* all) {
  all->reasoning += more.reasoning;
  all->content += more.content;
  all->calls.insert(all->calls.end(), more.calls.begin(), more.calls.end());
}

std::vector<ApiCall> JoinCalls(const std::vector<ToolEvent>& events) {
  std::vector<ApiCall> out;
  for (const ToolEvent& event : events) {
    if (event.kind == ToolEvent::Kind::kCallBegin) out.push_back({event.id, event.text, ""});
    if (event.kind == ToolEvent::Kind::kArguments) out.back().arguments += event.text;
  }
  return out;
}

}  // namespace

ApiAnswer::ApiAnswer(ApiReply reply)
    : reply_(std::move(reply)),
      choices_(
          static_cast<size_t>(reply_.n) * reply_.prompts.size(),
          ApiChoice{.splitter = AnswerSplitter(reply_.in_thought, reply_.calls, reply_.functions)}),
      prompts_(reply_.prompts.size()),
      unfinished_(choices_.size()) {}

ApiPiece ApiAnswer::Add(const TokenEvent& event, size_t prompt) {
  LATTE_CHECK(event.choice >= 0 && event.choice < reply_.n && prompt < prompts_.size(),
              "choice {} of {}, prompt {} of {}", event.choice, reply_.n, prompt, prompts_.size());
  ApiChoice& choice =
      choices_[prompt * static_cast<size_t>(reply_.n) + static_cast<size_t>(event.choice)];
  const bool is_chat = reply_.endpoint != ApiEndpoint::kCompletions;
  if (!reply_.stream) {
    if (!is_chat) choice.text += event.text;
    if (event.logprobs) choice.logprobs.push_back(*event.logprobs);
    if (!event.prompt_logprobs.empty()) choice.prompt_logprobs = event.prompt_logprobs;
  }
  Count(event, prompt, &choice);
  if (event.finish == FinishReason::kError && !error_) error_ = event.error;
  return is_chat ? Split(event, &choice) : ApiPiece();
}

// The counts of an event are totals of its answer and of its prompt.
void ApiAnswer::Count(const TokenEvent& event, size_t prompt, ApiChoice* choice) {
  usage_.generated_tokens +=
      event.generated_tokens - std::exchange(choice->generated_tokens, event.generated_tokens);
  usage_.drafted_tokens +=
      event.drafted_tokens - std::exchange(choice->drafted_tokens, event.drafted_tokens);
  usage_.accepted_tokens +=
      event.accepted_tokens - std::exchange(choice->accepted_tokens, event.accepted_tokens);
  ApiUsage& of_prompt = prompts_[prompt];
  usage_.prompt_tokens +=
      event.prompt_tokens - std::exchange(of_prompt.prompt_tokens, event.prompt_tokens);
  if (event.cached_tokens > of_prompt.cached_tokens)
    usage_.cached_tokens +=
        event.cached_tokens - std::exchange(of_prompt.cached_tokens, event.cached_tokens);
  if (event.finish && !choice->finish) --unfinished_;
  if (event.finish) choice->finish = event.finish;
  if (event.finish) choice->stop_string = event.stop_string;
}

ApiPiece ApiAnswer::Split(const TokenEvent& event, ApiChoice* choice) {
  AnswerSplitter& splitter = choice->splitter;
  const bool was_reasoning = splitter.in_reasoning();
  AnswerPiece piece = splitter.Push(event.text);
  if (event.token && (was_reasoning || splitter.in_reasoning())) ++usage_.reasoning_tokens;
  if (!piece.opening.empty()) choice->opened = true;
  ApiPiece out{std::move(piece.reasoning), {}, {}};
  ReadEvents(std::move(piece.events), choice, &out);
  if (event.finish) {
    AnswerPiece rest = splitter.Finish(/*cut=*/event.finish != FinishReason::kStop);
    out.reasoning += rest.reasoning;
    ReadEvents(std::move(rest.events), choice, &out);
  }
  if (!reply_.stream) Append(out, &choice->whole);
  return out;
}

// Sorts content and calls. Without parallel calls, only the first of an answer counts. A
// model may give two calls the same id; results could not be told apart, so the second gets
// another.
void ApiAnswer::ReadEvents(std::vector<ToolEvent> events, ApiChoice* choice, ApiPiece* out) const {
  for (ToolEvent& event : events) {
    if (event.kind == ToolEvent::Kind::kContent) {
      out->content += event.text;
    } else if (reply_.parallel_calls || event.call == 0) {
      if (event.kind == ToolEvent::Kind::kCallBegin) ++choice->begun_calls;
      if (event.kind == ToolEvent::Kind::kCallEnd) {
        ++choice->ended_calls;
        continue;
      }
      const bool is_new = event.id.empty() || choice->call_ids.insert(event.id).second;
      if (!is_new) event.id.clear();
      out->calls.push_back(std::move(event));
    }
  }
}

std::string CallId(std::string_view of_format, std::string_view id, size_t choice, size_t call) {
  return of_format.empty() ? fmt::format("call_{}_{}_{}", id, choice, call)
                           : std::string(of_format);
}

ApiMessage ApiAnswer::Message(size_t index) const {
  const ApiChoice& choice = choices_[index];
  const ApiPiece& whole = choice.whole;
  ApiMessage out{{}, whole.content, JoinCalls(whole.calls)};
  const bool reasoned = reply_.in_thought || !whole.reasoning.empty();
  // A chat with tools has no reasoning if its <think> is empty.
  if (reasoned || (choice.opened && !reply_.calls)) out.reasoning = whole.reasoning;
  return out;
}

std::string_view ApiAnswer::FinishName(size_t index) const {
  const ApiChoice& choice = choices_[index];
  const bool calls = choice.ended_calls > 0 && choice.ended_calls == choice.begun_calls;
  if (choice.finish == FinishReason::kStop && calls) return "tool_calls";
  return Name(*choice.finish);
}

}  // namespace latte
