#include "src/openai/events/completion_body.h"

#include <string>
#include <utility>

#include "src/base/check.h"
#include "src/base/json_out.h"
#include "src/openai/logprobs.h"

namespace latte {
namespace {

JsonOut MessageJson(const OpenAiAnswer& answer, std::string_view id, size_t index) {
  const OpenAiMessage message = answer.Message(index);
  const std::vector<OpenAiCall>& calls = message.calls;
  JsonOut out = {{"role", "assistant"}, {"content", message.content}};
  out["refusal"] = nullptr;  // clients with strict types expect it
  if (message.content.empty() && !calls.empty()) out["content"] = nullptr;
  if (message.reasoning) out["reasoning_content"] = *message.reasoning;
  for (size_t i = 0; i < calls.size(); ++i)
    out["tool_calls"].push_back(
        {{"id", CallId(calls[i].id, id, index, i)},
         {"type", "function"},
         {"function", {{"name", calls[i].name}, {"arguments", calls[i].arguments}}}});
  return out;
}

JsonOut ChoiceJson(const OpenAiAnswer& answer, const Tokenizer& tokenizer, std::string_view id,
                   size_t index) {
  const OpenAiReply& reply = answer.reply();
  const OpenAiChoice& choice = answer.choice(index);
  JsonOut out = {{"index", index}};
  const bool with_logprobs = reply.logprobs >= 0;
  if (reply.endpoint == OpenAiEndpoint::kChat) {
    out["message"] = MessageJson(answer, id, index);
    out["logprobs"] = with_logprobs ? ChatLogprobs(choice.logprobs, tokenizer) : JsonOut(nullptr);
  } else {
    out["text"] = choice.text;
    out["logprobs"] = nullptr;
    if (with_logprobs) {
      int64_t offset = 0;
      const OpenAiPrompt& prompt = reply.prompts[index / static_cast<size_t>(reply.n)];
      out["logprobs"] = CompletionLogprobs({.echoed = reply.echo ? &prompt : nullptr,
                                            .prompt = choice.prompt_logprobs,
                                            .tokens = choice.logprobs},
                                           reply, tokenizer, &offset);
    }
  }
  out["finish_reason"] = answer.FinishName(index);
  if (reply.prompt_logprobs >= 0)
    out["prompt_logprobs"] =
        PromptLogprobs(choice.prompt_logprobs, reply.prompt_logprobs, tokenizer);
  return out;
}

}  // namespace

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

JsonOut CompletionBody(const OpenAiAnswer& answer, const Tokenizer& tokenizer, std::string_view id,
                       int64_t created) {
  LATTE_CHECK(answer.done() && !answer.error(),
              "no body of an answer that has not ended, or has failed");
  const OpenAiReply& reply = answer.reply();
  const bool chat = reply.endpoint == OpenAiEndpoint::kChat;
  JsonOut choices = JsonOut::array();
  for (size_t i = 0; i < answer.choices(); ++i)
    choices.push_back(ChoiceJson(answer, tokenizer, id, i));
  JsonOut out = {{"id", std::string(chat ? "chatcmpl-" : "cmpl-") + std::string(id)},
                 {"object", chat ? "chat.completion" : "text_completion"},
                 {"created", created},
                 {"model", reply.model},
                 {"choices", std::move(choices)},
                 {"usage", UsageJson(reply.endpoint, answer.usage())}};
  if (!reply.fingerprint.empty()) out["system_fingerprint"] = reply.fingerprint;
  return out;
}

}  // namespace latte
