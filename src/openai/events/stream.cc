#include "src/openai/events/stream.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/openai/events/json_text.h"
#include "src/openai/logprobs.h"

namespace latte {
namespace {

constexpr std::string_view kDone = "data: [DONE]\n\n";

std::string FinishMember(const std::optional<FinishReason>& finish) {
  return finish ? fmt::format(R"("finish_reason":"{}")", Name(*finish)) : R"("finish_reason":null)";
}

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

}  // namespace

OpenAiStream::OpenAiStream(const OpenAiReply& reply, const Tokenizer& tokenizer,
                           std::string_view id, int64_t created)
    : reply_(reply), tokenizer_(tokenizer) {
  const bool chat = reply.endpoint == OpenAiEndpoint::kChat;
  beginning_ =
      fmt::format(R"(data: {{"id":{},"object":"{}","created":{},"model":{},"choices":[)",
                  Quoted(std::string(chat ? "chatcmpl-" : "cmpl-") + std::string(id)),
                  chat ? "chat.completion.chunk" : "text_completion", created, Quoted(reply.model));
  choices_.resize(static_cast<size_t>(reply.n) * reply.prompts.size(), Choice(reply.in_thought));
}

void OpenAiStream::Chunk(size_t index, std::string_view members, const OpenAiUsage& usage,
                         std::string* out) const {
  fmt::format_to(std::back_inserter(*out), R"({}{{"index":{},{}}}])", beginning_, index, members);
  if (reply_.continuous_usage) {
    *out += R"(,"usage":)" + Dump(UsageJson(usage));
  } else if (reply_.include_usage) {
    *out += R"(,"usage":null)";
  }
  *out += "}\n\n";
}

std::string OpenAiStream::PromptLogprobsMember(const TokenEvent& event) const {
  if (reply_.prompt_logprobs < 0) return {};
  return R"("prompt_logprobs":)" +
         Dump(PromptLogprobs(event.prompt_logprobs, reply_.prompt_logprobs, tokenizer_)) + ",";
}

void OpenAiStream::AddChat(size_t index, const TokenEvent& event, const OpenAiUsage& usage,
                           std::string* out) {
  Choice& choice = choices_[index];
  if (!std::exchange(choice.begun, true))
    Chunk(index,
          PromptLogprobsMember(event) +
              R"("delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null)",
          usage, out);
  AnswerSplitter::Parts parts = choice.splitter.Push(event.text);
  if (event.finish) {
    AnswerSplitter::Parts rest = choice.splitter.Flush();
    parts.reasoning += rest.reasoning;
    parts.content += rest.content;
  }
  std::string logprobs = R"(,"logprobs":null,"finish_reason":null)";
  bool has_logprobs = false;
  if (reply_.logprobs >= 0 && event.logprobs) {
    has_logprobs = true;
    logprobs = R"(,"logprobs":)" + Dump(ChatLogprobs({&*event.logprobs, 1}, tokenizer_)) +
               R"(,"finish_reason":null)";
  }
  std::string delta;
  if (!parts.reasoning.empty()) {
    delta = R"("reasoning_content":)";
    AppendJsonString(parts.reasoning, &delta);
  }
  if (!parts.content.empty() || (has_logprobs && delta.empty())) {
    delta += delta.empty() ? R"("content":)" : R"(,"content":)";
    AppendJsonString(parts.content, &delta);
  }
  if (!delta.empty()) Chunk(index, R"("delta":{)" + delta + "}" + logprobs, usage, out);
  if (event.finish)
    Chunk(index, R"("delta":{},"logprobs":null,)" + FinishMember(event.finish), usage, out);
}

void OpenAiStream::AddText(size_t i, size_t index, const TokenEvent& event,
                           const OpenAiUsage& usage, std::string* out) {
  Choice& choice = choices_[index];
  const bool first = !std::exchange(choice.begun, true);
  std::string members = first ? PromptLogprobsMember(event) : std::string();
  const bool echoes = first && reply_.echo && reply_.logprobs >= 0;
  std::string logprobs = "null";
  if (reply_.logprobs >= 0 && (event.logprobs || echoes)) {
    CompletionTokens shown;
    if (echoes) shown.echoed = &reply_.prompts[i];
    if (echoes) shown.prompt = event.prompt_logprobs;
    if (event.logprobs) shown.tokens = {&*event.logprobs, 1};
    logprobs = Dump(CompletionLogprobs(shown, reply_, tokenizer_, &choice.text_offset));
  }
  if (event.text.empty() && logprobs == "null" && members.empty() && !event.finish) return;
  members += R"("text":)";
  AppendJsonString(event.text, &members);
  members += R"(,"logprobs":)" + logprobs + "," + FinishMember(event.finish);
  Chunk(index, members, usage, out);
}

void OpenAiStream::Add(size_t i, const TokenEvent& event, const OpenAiUsage& usage,
                       std::string* out) {
  const size_t index = i * static_cast<size_t>(reply_.n) + static_cast<size_t>(event.choice);
  if (reply_.endpoint == OpenAiEndpoint::kChat) {
    AddChat(index, event, usage, out);
  } else {
    AddText(i, index, event, usage, out);
  }
}

void OpenAiStream::Finish(const OpenAiUsage& usage, std::string* out) const {
  if (reply_.include_usage) *out += beginning_ + R"(],"usage":)" + Dump(UsageJson(usage)) + "}\n\n";
  *out += kDone;
}

}  // namespace latte
