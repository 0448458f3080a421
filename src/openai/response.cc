#include "src/openai/response.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/json_out.h"
#include "src/chat/answer_message.h"
#include "src/openai/logprobs.h"

namespace latte {
namespace {

void Append(const OpenAiParts& more, OpenAiParts* all) {
  all->reasoning += more.reasoning;
  all->content += more.content;
  all->calls.insert(all->calls.end(), more.calls.begin(), more.calls.end());
}

std::vector<OpenAiCall> JoinCalls(const std::vector<ToolEvent>& events) {
  std::vector<OpenAiCall> out;
  for (const ToolEvent& event : events) {
    if (event.kind == ToolEvent::Kind::kCallBegin) out.push_back({event.id, event.text, ""});
    if (event.kind == ToolEvent::Kind::kArguments) out.back().arguments += event.text;
  }
  return out;
}

}  // namespace

OpenAiAnswer::OpenAiAnswer(OpenAiReply reply)
    : reply_(std::move(reply)),
      choices_(
          static_cast<size_t>(reply_.n) * reply_.prompts.size(),
          OpenAiChoice{.splitter = AnswerSplitter(
                           reply_.in_thought, reply_.calls ? CallOpenings(*reply_.calls)
                                                           : std::span<const std::string_view>())}),
      prompts_(reply_.prompts.size()),
      unfinished_(choices_.size()) {
  if (!reply_.calls) return;
  for (OpenAiChoice& choice : choices_) choice.parser.emplace(*reply_.calls, reply_.texts);
}

OpenAiParts OpenAiAnswer::Add(const TokenEvent& event, size_t prompt) {
  LATTE_CHECK(event.choice >= 0 && event.choice < reply_.n && prompt < prompts_.size(),
              "choice {} of {}, prompt {} of {}", event.choice, reply_.n, prompt, prompts_.size());
  OpenAiChoice& choice =
      choices_[prompt * static_cast<size_t>(reply_.n) + static_cast<size_t>(event.choice)];
  if (!reply_.stream) {
    choice.text += event.text;
    if (event.logprobs) choice.logprobs.push_back(*event.logprobs);
    if (!event.prompt_logprobs.empty()) choice.prompt_logprobs = event.prompt_logprobs;
  }
  Count(event, prompt, &choice);
  if (event.finish == FinishReason::kError && !error_) error_ = event.error;
  if (reply_.endpoint != OpenAiEndpoint::kChat) return {};
  return Split(event, &choice);
}

// The counts of an event are totals of its answer and of its prompt.
void OpenAiAnswer::Count(const TokenEvent& event, size_t prompt, OpenAiChoice* choice) {
  usage_.generated_tokens +=
      event.generated_tokens - std::exchange(choice->generated_tokens, event.generated_tokens);
  usage_.drafted_tokens +=
      event.drafted_tokens - std::exchange(choice->drafted_tokens, event.drafted_tokens);
  usage_.accepted_tokens +=
      event.accepted_tokens - std::exchange(choice->accepted_tokens, event.accepted_tokens);
  OpenAiUsage& of_prompt = prompts_[prompt];
  usage_.prompt_tokens +=
      event.prompt_tokens - std::exchange(of_prompt.prompt_tokens, event.prompt_tokens);
  if (event.cached_tokens > of_prompt.cached_tokens)
    usage_.cached_tokens +=
        event.cached_tokens - std::exchange(of_prompt.cached_tokens, event.cached_tokens);
  if (event.finish && !choice->finish) --unfinished_;
  if (event.finish) choice->finish = event.finish;
}

OpenAiParts OpenAiAnswer::Split(const TokenEvent& event, OpenAiChoice* choice) {
  AnswerSplitter& splitter = choice->splitter;
  const bool was_reasoning = splitter.in_reasoning();
  AnswerSplitter::Parts parts = splitter.Push(event.text);
  if (event.token && (was_reasoning || splitter.in_reasoning())) ++usage_.reasoning_tokens;
  if (event.finish) {
    const AnswerSplitter::Parts rest = splitter.Flush();
    parts.reasoning += rest.reasoning;
    parts.content += rest.content;
  }
  OpenAiParts out{std::move(parts.reasoning), {}, {}};
  if (!choice->parser) {
    out.content = std::move(parts.content);
    return out;
  }
  ReadCalls(choice->parser->Add(parts.content), choice, &out);
  if (event.finish)
    ReadCalls(choice->parser->Finish(event.finish != FinishReason::kStop), choice, &out);
  if (!reply_.stream) Append(out, &choice->parts);
  return out;
}

// Sorts what the parser has found. Without parallel calls, only the first of an answer counts.
void OpenAiAnswer::ReadCalls(std::vector<ToolEvent> events, OpenAiChoice* choice,
                             OpenAiParts* out) const {
  for (ToolEvent& event : events) {
    if (event.kind == ToolEvent::Kind::kContent) {
      out->content += event.text;
    } else if (reply_.parallel_calls || event.call == 0) {
      if (event.kind == ToolEvent::Kind::kCallEnd)
        ++choice->ended_calls;
      else
        out->calls.push_back(std::move(event));
    }
  }
}

std::string CallId(std::string_view of_format, std::string_view id, size_t choice, size_t call) {
  return of_format.empty() ? fmt::format("call_{}_{}_{}", id, choice, call)
                           : std::string(of_format);
}

std::string_view OpenAiAnswer::FinishName(size_t index) const {
  const OpenAiChoice& choice = choices_[index];
  if (choice.finish == FinishReason::kStop && choice.ended_calls > 0) return "tool_calls";
  return Name(*choice.finish);
}

JsonOut UsageJson(OpenAiEndpoint endpoint, const OpenAiUsage& usage) {
  JsonOut out = {{"prompt_tokens", usage.prompt_tokens},
                 {"completion_tokens", usage.generated_tokens},
                 {"total_tokens", usage.prompt_tokens + usage.generated_tokens},
                 {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
  if (endpoint == OpenAiEndpoint::kChat)
    out["completion_tokens_details"] = {{"reasoning_tokens", usage.reasoning_tokens}};
  if (usage.drafted_tokens > 0) {
    JsonOut& details = out["completion_tokens_details"];
    details["accepted_prediction_tokens"] = usage.accepted_tokens;
    details["rejected_prediction_tokens"] = usage.drafted_tokens - usage.accepted_tokens;
  }
  return out;
}

// Content and calls of an answer to a request with tools.
JsonOut OpenAiAnswer::MessageJson(std::string_view id, size_t index) const {
  const OpenAiChoice& choice = choices_[index];
  if (!choice.parser) {
    const ChatMessage message = AnswerMessage(choice.text, reply_.in_thought);
    JsonOut out = {{"role", "assistant"}, {"content", message.content.value_or("")}};
    out["refusal"] = nullptr;  // clients with strict types expect it
    if (message.reasoning) out["reasoning_content"] = *message.reasoning;
    return out;
  }
  const OpenAiParts& parts = choice.parts;
  const std::vector<OpenAiCall> calls = JoinCalls(parts.calls);
  JsonOut out = {{"role", "assistant"}, {"content", parts.content}, {"refusal", nullptr}};
  if (parts.content.empty() && !calls.empty()) out["content"] = nullptr;
  if (reply_.in_thought || !parts.reasoning.empty()) out["reasoning_content"] = parts.reasoning;
  for (size_t i = 0; i < calls.size(); ++i)
    out["tool_calls"].push_back(
        {{"id", CallId(calls[i].id, id, index, i)},
         {"type", "function"},
         {"function", {{"name", calls[i].name}, {"arguments", calls[i].arguments}}}});
  return out;
}

JsonOut OpenAiAnswer::ChoiceJson(const Tokenizer& tokenizer, std::string_view id,
                                 size_t index) const {
  const OpenAiChoice& choice = choices_[index];
  JsonOut out = {{"index", index}};
  const bool with_logprobs = reply_.logprobs >= 0;
  if (reply_.endpoint == OpenAiEndpoint::kChat) {
    out["message"] = MessageJson(id, index);
    out["logprobs"] = with_logprobs ? ChatLogprobs(choice.logprobs, tokenizer) : JsonOut(nullptr);
  } else {
    out["text"] = choice.text;
    out["logprobs"] = nullptr;
    if (with_logprobs) {
      int64_t offset = 0;
      const OpenAiPrompt& prompt = reply_.prompts[index / static_cast<size_t>(reply_.n)];
      out["logprobs"] = CompletionLogprobs({.echoed = reply_.echo ? &prompt : nullptr,
                                            .prompt = choice.prompt_logprobs,
                                            .tokens = choice.logprobs},
                                           reply_, tokenizer, &offset);
    }
  }
  out["finish_reason"] = FinishName(index);
  if (reply_.prompt_logprobs >= 0)
    out["prompt_logprobs"] =
        PromptLogprobs(choice.prompt_logprobs, reply_.prompt_logprobs, tokenizer);
  return out;
}

JsonOut OpenAiAnswer::Body(const Tokenizer& tokenizer, std::string_view id, int64_t created) const {
  LATTE_CHECK(done() && !error_, "no body of an answer that has not ended, or has failed");
  const bool chat = reply_.endpoint == OpenAiEndpoint::kChat;
  JsonOut choices = JsonOut::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(ChoiceJson(tokenizer, id, i));
  JsonOut out = {{"id", std::string(chat ? "chatcmpl-" : "cmpl-") + std::string(id)},
                 {"object", chat ? "chat.completion" : "text_completion"},
                 {"created", created},
                 {"model", reply_.model},
                 {"choices", std::move(choices)},
                 {"usage", UsageJson(reply_.endpoint, usage_)}};
  if (!reply_.fingerprint.empty()) out["system_fingerprint"] = reply_.fingerprint;
  return out;
}

}  // namespace latte
