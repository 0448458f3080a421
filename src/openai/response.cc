#include "src/openai/response.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/json_out.h"
#include "src/chat/answer_message.h"
#include "src/openai/logprobs.h"

namespace latte {

OpenAiAnswer::OpenAiAnswer(OpenAiReply reply)
    : reply_(std::move(reply)),
      choices_(static_cast<size_t>(reply_.n) * reply_.prompts.size()),
      prompts_(reply_.prompts.size()) {}

void OpenAiAnswer::Add(const TokenEvent& event, size_t prompt) {
  LATTE_CHECK(event.choice >= 0 && event.choice < reply_.n && prompt < prompts_.size(),
              "choice {} of {}, prompt {} of {}", event.choice, reply_.n, prompt, prompts_.size());
  OpenAiChoice& choice =
      choices_[prompt * static_cast<size_t>(reply_.n) + static_cast<size_t>(event.choice)];
  if (!reply_.stream) {
    choice.text += event.text;
    if (event.logprobs) choice.logprobs.push_back(*event.logprobs);
    if (!event.prompt_logprobs.empty()) choice.prompt_logprobs = event.prompt_logprobs;
  }
  choice.generated_tokens = event.generated_tokens;
  choice.finish = event.finish;
  OpenAiUsage& usage = prompts_[prompt];
  usage.prompt_tokens = event.prompt_tokens;
  usage.cached_tokens = std::max(usage.cached_tokens, event.cached_tokens);
  if (event.finish == FinishReason::kError && !error_) error_ = event.error;
}

bool OpenAiAnswer::done() const {
  return std::all_of(choices_.begin(), choices_.end(),
                     [](const OpenAiChoice& choice) { return choice.finish.has_value(); });
}

OpenAiUsage OpenAiAnswer::usage() const {
  OpenAiUsage sum;
  for (const OpenAiUsage& prompt : prompts_) {
    sum.prompt_tokens += prompt.prompt_tokens;
    sum.cached_tokens += prompt.cached_tokens;
  }
  for (const OpenAiChoice& choice : choices_) sum.generated_tokens += choice.generated_tokens;
  return sum;
}

JsonOut UsageJson(const OpenAiUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.generated_tokens},
          {"total_tokens", usage.prompt_tokens + usage.generated_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

JsonOut OpenAiAnswer::ChoiceJson(const Tokenizer& tokenizer, size_t index) const {
  const OpenAiChoice& choice = choices_[index];
  JsonOut out = {{"index", index}};
  const bool with_logprobs = reply_.logprobs >= 0;
  if (reply_.endpoint == OpenAiEndpoint::kChat) {
    const ChatMessage message = AnswerMessage(choice.text, reply_.in_thought);
    out["message"] = {{"role", "assistant"}, {"content", message.content.value_or("")}};
    out["message"]["refusal"] = nullptr;  // clients with strict types expect it
    if (message.reasoning) out["message"]["reasoning_content"] = *message.reasoning;
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
  out["finish_reason"] = Name(*choice.finish);
  if (reply_.prompt_logprobs >= 0)
    out["prompt_logprobs"] =
        PromptLogprobs(choice.prompt_logprobs, reply_.prompt_logprobs, tokenizer);
  return out;
}

JsonOut OpenAiAnswer::Body(const Tokenizer& tokenizer, std::string_view id, int64_t created) const {
  LATTE_CHECK(done() && !error_, "no body of an answer that has not ended, or has failed");
  const bool chat = reply_.endpoint == OpenAiEndpoint::kChat;
  JsonOut choices = JsonOut::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(ChoiceJson(tokenizer, i));
  return {{"id", std::string(chat ? "chatcmpl-" : "cmpl-") + std::string(id)},
          {"object", chat ? "chat.completion" : "text_completion"},
          {"created", created},
          {"model", reply_.model},
          {"choices", std::move(choices)},
          {"usage", UsageJson(usage())}};
}

}  // namespace latte
