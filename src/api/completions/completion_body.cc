#include "src/api/completions/completion_body.h"

#include <iterator>
#include <string>

#include <fmt/format.h>

#include "src/api/common/json_text.h"
#include "src/api/completions/logprobs.h"
#include "src/base/check.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

JsonOut MessageJson(const ApiAnswer& answer, std::string_view id, size_t index) {
  const ApiMessage message = answer.Message(index);
  const std::vector<ApiCall>& calls = message.calls;
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

void AppendChatChoice(const ApiAnswer& answer, const Tokenizer& tokenizer, std::string_view id,
                      size_t index, std::string* out) {
  *out += R"("message":)" + Dump(MessageJson(answer, id, index));
  *out += R"(,"logprobs":)";
  if (answer.reply().logprobs < 0)
    *out += "null";
  else
    AppendChatLogprobs(answer.choice(index).logprobs, tokenizer, out);
}

void AppendTextChoice(const ApiAnswer& answer, const Tokenizer& tokenizer, size_t index,
                      std::string* out) {
  const ApiReply& reply = answer.reply();
  const ApiChoice& choice = answer.choice(index);
  *out += R"("text":)";
  AppendJsonString(choice.text, out);
  *out += R"(,"logprobs":)";
  if (reply.logprobs < 0) {
    *out += "null";
    return;
  }
  int64_t offset = 0;
  const ApiPrompt& prompt = reply.prompts[index / static_cast<size_t>(reply.n)];
  AppendCompletionLogprobs({.echoed = reply.echo ? &prompt : nullptr,
                            .prompt = choice.prompt_logprobs,
                            .tokens = choice.logprobs},
                           reply, tokenizer, &offset, out);
}

void AppendChoice(const ApiAnswer& answer, const Tokenizer& tokenizer, std::string_view id,
                  size_t index, std::string* out) {
  const ApiReply& reply = answer.reply();
  fmt::format_to(std::back_inserter(*out), R"({{"index":{},)", index);
  if (reply.endpoint == ApiEndpoint::kChat)
    AppendChatChoice(answer, tokenizer, id, index, out);
  else
    AppendTextChoice(answer, tokenizer, index, out);
  *out += R"(,"finish_reason":)" + JsonString(answer.FinishName(index));
  if (reply.prompt_logprobs >= 0) {
    *out += R"(,"prompt_logprobs":)";
    AppendPromptLogprobs(answer.choice(index).prompt_logprobs, reply.prompt_logprobs, tokenizer,
                         out);
  }
  *out += '}';
}

}  // namespace

JsonOut UsageJson(ApiEndpoint endpoint, const ApiUsage& usage) {
  JsonOut out = {{"prompt_tokens", usage.prompt_tokens},
                 {"completion_tokens", usage.generated_tokens},
                 {"total_tokens", usage.prompt_tokens + usage.generated_tokens},
                 {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
  if (endpoint == ApiEndpoint::kChat)
    out["completion_tokens_details"] = {{"reasoning_tokens", usage.reasoning_tokens}};
  if (usage.drafted_tokens > 0) {
    JsonOut& details = out["completion_tokens_details"];
    details["accepted_prediction_tokens"] = usage.accepted_tokens;
    details["rejected_prediction_tokens"] = usage.drafted_tokens - usage.accepted_tokens;
  }
  return out;
}

std::string CompletionBody(const ApiAnswer& answer, const Tokenizer& tokenizer, std::string_view id,
                           int64_t created) {
  LATTE_CHECK(answer.done() && !answer.error(),
              "no body of an answer that has not ended, or has failed");
  const ApiReply& reply = answer.reply();
  const bool chat = reply.endpoint == ApiEndpoint::kChat;
  std::string out = Dump({{"id", std::string(chat ? "chatcmpl-" : "cmpl-") + std::string(id)},
                          {"object", chat ? "chat.completion" : "text_completion"},
                          {"created", created},
                          {"model", reply.model}});
  out.pop_back();  // the brace
  out += R"(,"choices":[)";
  for (size_t i = 0; i < answer.choices(); ++i) {
    if (i > 0) out += ',';
    AppendChoice(answer, tokenizer, id, i, &out);
  }
  out += R"(],"usage":)" + Dump(UsageJson(reply.endpoint, answer.usage()));
  if (!reply.fingerprint.empty())
    out += R"(,"system_fingerprint":)" + JsonString(reply.fingerprint);
  out += '}';
  return out;
}

}  // namespace latte
