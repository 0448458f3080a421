#include "src/api/completions/completion_writer.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "src/api/common/error.h"
#include "src/api/common/json_text.h"
#include "src/api/completions/completion_body.h"
#include "src/api/completions/logprobs.h"
#include "src/base/json_out.h"

namespace latte {
namespace {

constexpr std::string_view kDone = "data: [DONE]\n\n";

constexpr std::string_view kNoLogprobs = R"("logprobs":null)";
constexpr std::string_view kUnfinished = R"("finish_reason":null)";

void AppendFinish(std::string_view name, std::string* out) {
  *out += R"("finish_reason":")";
  *out += name;
  *out += '"';
}

}  // namespace

CompletionWriter::CompletionWriter(AnswerWriterParts parts)
    : parts_(std::move(parts)),
      reply_(parts_.reply),
      tokenizer_(parts_.tokenizer),
      choices_(static_cast<size_t>(reply_.n) * reply_.prompts.size()) {
  const bool chat = reply_.endpoint == ApiEndpoint::kChat;
  beginning_ = fmt::format(R"(data: {{"id":{},"object":"{}","created":{},"model":{},)",
                           JsonString(std::string(chat ? "chatcmpl-" : "cmpl-") + parts_.id),
                           chat ? "chat.completion.chunk" : "text_completion", parts_.created,
                           JsonString(reply_.model));
  if (!reply_.fingerprint.empty())
    beginning_ += R"("system_fingerprint":)" + JsonString(reply_.fingerprint) + ",";
  beginning_ += R"("choices":[)";
}

void CompletionWriter::Begin(size_t index, std::string* out) const {
  *out += beginning_;
  fmt::format_to(std::back_inserter(*out), R"({{"index":{},)", index);
}

void CompletionWriter::End(const ApiUsage& usage, std::string* out) const {
  *out += "}]";
  if (reply_.continuous_usage) {
    *out += R"(,"usage":)" + Dump(UsageJson(reply_.endpoint, usage));
  } else if (reply_.include_usage) {
    *out += R"(,"usage":null)";
  }
  *out += "}\n\n";
}

void CompletionWriter::AppendPromptLogprobs(const TokenEvent& event, std::string* out) const {
  if (reply_.prompt_logprobs < 0) return;
  *out += R"("prompt_logprobs":)";
  latte::AppendPromptLogprobs(event.prompt_logprobs, reply_.prompt_logprobs, tokenizer_, out);
  *out += ',';
}

// One entry per call: some clients do not join the entries of a chunk. The first entry of a call
// has its id and name.
void CompletionWriter::AppendCalls(size_t index, const std::vector<ToolEvent>& events,
                                   std::string* out) const {
  *out += R"("tool_calls":[)";
  for (size_t i = 0; i < events.size();) {
    const size_t call = events[i].call;
    fmt::format_to(std::back_inserter(*out), R"({}{{"index":{},)", i > 0 ? "," : "", call);
    std::string name;
    if (events[i].kind == ToolEvent::Kind::kCallBegin) {
      *out += R"("id":)" + JsonString(CallId(events[i].id, parts_.id, index, call));
      *out += R"(,"type":"function",)";
      name = R"("name":)" + JsonString(events[i].text) + ",";
    }
    std::string arguments;
    for (; i < events.size() && events[i].call == call; ++i)
      if (events[i].kind == ToolEvent::Kind::kArguments) arguments += events[i].text;
    *out += R"("function":{)" + name + R"("arguments":)" + JsonString(arguments) + "}}";
  }
  *out += ']';
}

// "reasoning_content", "content" and "tool_calls", of which there is at least one.
void CompletionWriter::AppendDelta(size_t index, const ApiPiece& piece, std::string* out) const {
  const bool has_calls = !piece.calls.empty();
  if (!piece.reasoning.empty())
    *out += R"("reasoning_content":)" + JsonString(piece.reasoning) + ",";
  if (!piece.content.empty() || (piece.reasoning.empty() && !has_calls))
    *out += R"("content":)" + JsonString(piece.content) + ",";
  if (has_calls)
    AppendCalls(index, piece.calls, out);
  else
    out->pop_back();
}

void CompletionWriter::AddChat(const AnswerEvent& next, std::string* out) {
  const TokenEvent& event = next.event;
  const ApiPiece& piece = next.piece;
  const ApiUsage& usage = next.answer.usage();
  const size_t index = next.choice();
  if (!std::exchange(choices_[index].begun, true)) {
    Begin(index, out);
    AppendPromptLogprobs(event, out);
    *out += R"("delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null)";
    End(usage, out);
  }
  const bool with_logprobs = reply_.logprobs >= 0 && event.logprobs;
  if (with_logprobs || !piece.reasoning.empty() || !piece.content.empty() || !piece.calls.empty()) {
    Begin(index, out);
    *out += R"("delta":{)";
    AppendDelta(index, piece, out);
    *out += "},";
    if (with_logprobs) {
      *out += R"("logprobs":)";
      AppendChatLogprobs({&*event.logprobs, 1}, tokenizer_, out);
    } else {
      *out += kNoLogprobs;
    }
    *out += ',';
    *out += kUnfinished;
    End(usage, out);
  }
  if (!event.finish) return;
  Begin(index, out);
  *out += R"("delta":{},"logprobs":null,)";
  AppendFinish(next.answer.FinishName(index), out);
  End(usage, out);
}

void CompletionWriter::AddText(const AnswerEvent& next, std::string* out) {
  const TokenEvent& event = next.event;
  const size_t index = next.choice();
  Choice& choice = choices_[index];
  const bool first = !std::exchange(choice.begun, true);
  const bool echoes = first && reply_.echo && reply_.logprobs >= 0;
  const bool with_logprobs = reply_.logprobs >= 0 && (event.logprobs || echoes);
  const bool with_prompt = first && reply_.prompt_logprobs >= 0;
  if (event.text.empty() && !with_logprobs && !with_prompt && !event.finish) return;
  Begin(index, out);
  if (with_prompt) AppendPromptLogprobs(event, out);
  *out += R"("text":)";
  AppendJsonString(event.text, out);
  *out += ',';
  if (with_logprobs) {
    CompletionTokens shown;
    if (echoes) shown.echoed = &reply_.prompts[next.prompt];
    if (echoes) shown.prompt = event.prompt_logprobs;
    if (event.logprobs) shown.tokens = {&*event.logprobs, 1};
    *out += R"("logprobs":)";
    AppendCompletionLogprobs(shown, reply_, tokenizer_, &choice.text_offset, out);
  } else {
    *out += kNoLogprobs;
  }
  *out += ',';
  if (event.finish)
    AppendFinish(Name(*event.finish), out);
  else
    *out += kUnfinished;
  End(next.answer.usage(), out);
}

void CompletionWriter::Add(const AnswerEvent& next, std::string* sse) {
  if (reply_.endpoint == ApiEndpoint::kChat) {
    AddChat(next, sse);
  } else {
    AddText(next, sse);
  }
}

void CompletionWriter::Finish(const ApiAnswer& answer, std::string* sse) {
  if (reply_.include_usage) {
    *sse += beginning_;
    *sse += R"(],"usage":)" + Dump(UsageJson(reply_.endpoint, answer.usage())) + "}\n\n";
  }
  *sse += kDone;
}

void CompletionWriter::Fail(const Error& error, const ApiAnswer& /*answer*/, std::string* sse) {
  *sse += "data: " + Dump(OpenAiError(error)) + "\n\n";
  *sse += kDone;
}

std::string CompletionWriter::Body(const ApiAnswer& answer) const {
  return CompletionBody(answer, tokenizer_, parts_.id, parts_.created);
}

}  // namespace latte
