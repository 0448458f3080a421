// A request of the OpenAI API or of Anthropic's: a byte that chooses the endpoint, the body, then
// NUL and bytes that choose the events of its answer. Both forms of the answer, a stream and a
// whole, must be JSON.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "src/api/common/error.h"
#include "src/api/request.h"
#include "src/api/running.h"
#include "src/base/json.h"
#include "src/base/json_out.h"
#include "tests/support/byte_source.h"

namespace latte::fuzz {
namespace {

using testing_support::ByteSource;

constexpr ApiRules kRules = {.max_n = 8, .max_prompts = 16, .max_answers = 32};
constexpr int64_t kMostEvents = 256;
constexpr int64_t kMostTokens = 4;  // listed for a prompt

// Shows all messages, their calls and the tools; the calls of answers are Kimi's.
constexpr auto kTemplate =
    "{{ tools | tojson if tools else '' }}{% for m in messages %}{{ m.role }}: "
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.id }}{{ c.function.name }}"
    "{{ c.function.arguments }}{% endfor %}{% endfor %}{# <|tool_calls_section_begin|> #}";

const ApiModel& Model() {
  static const ApiModel model = [] {
    const ModelFiles files = ModelFiles::Load("tiny").value();
    ApiModel out = ApiModel::Create("tiny", files).value();
    out.chat = ChatPromptBuilder::Create(out.tokenizer, files.config, kTemplate);
    return out;
  }();
  return model;
}

void CheckError(const Error& error) {
  Require(HttpStatus(error.code) == 400, "a bad body is the client's fault");
  Require(!error.message.empty() && error.message.size() <= 2100, "a refusal is short");
  Require(Json::Parse(Dump(OpenAiError(error)), "error").has_value(), "an error is JSON");
}

void CheckRequest(const ApiRequest& request) {
  const size_t prompts = request.requests.size();
  Require(prompts > 0 && prompts == request.reply.prompts.size(), "there is a prompt");
  Require(prompts <= static_cast<size_t>(kRules.max_prompts), "prompts are bounded");
  Require(request.reply.n <= kRules.max_n, "answers are bounded");
  for (const Request& prompt : request.requests) {
    Require(prompt.Validate().has_value(), "the engine takes the settings");
    Require(!prompt.tokens.empty() && prompt.n == request.reply.n, "a prompt has tokens");
  }
}

TokenLogprobs Logprobs(ByteSource* choose, int count) {
  TokenLogprobs out{{choose->Below(200), -1.5F}, {}};
  for (int i = 0; i < count; ++i) out.top.push_back({choose->Below(256), -0.5F});
  return out;
}

std::string Text(ByteSource* choose) {
  constexpr std::string_view kTexts[] = {"<think>",
                                         "</think>",
                                         "<",
                                         "/think>",
                                         "<|tool_calls_section_begin|><|tool_call_begin|>",
                                         "f:0<|tool_call_argument_begin|>{",
                                         "<|tool_call_end|>",
                                         "<|tool_calls_section_end|>"};
  std::string out;
  for (int i = choose->Below(4); i > 0; --i) {
    const auto what = static_cast<size_t>(choose->Below(12));
    if (what < std::size(kTexts))
      out += kTexts[what];
    else
      out += static_cast<char>(choose->Below(256));
  }
  return out;
}

// One event of a choice that is open; `last`: it ends.
TokenEvent Event(const ApiReply& reply, size_t index, bool last, ByteSource* choose) {
  TokenEvent event;
  event.choice = static_cast<int>(index % static_cast<size_t>(reply.n));
  event.text = Text(choose);
  event.prompt_tokens = choose->Below(100);
  event.cached_tokens = choose->Below(100);
  event.generated_tokens = choose->Below(100);
  if (choose->Below(4) > 0) event.token = choose->Below(256);
  if (event.token && reply.logprobs >= 0) event.logprobs = Logprobs(choose, reply.logprobs);
  for (int i = choose->Below(kMostTokens); i > 0; --i)
    event.prompt_logprobs.push_back(Logprobs(choose, std::max(reply.prompt_logprobs, 0)));
  if (!last) return event;
  event.finish = static_cast<FinishReason>(choose->Below(4));
  event.error = {Code::kInternal, Text(choose)};
  return event;
}

// The data of an event; the events of /v1/responses have a name before them.
std::string_view Data(std::string_view event, bool is_named) {
  if (is_named) {
    Require(event.starts_with("event: response."), "an event has a name");
    event.remove_prefix(std::min(event.find('\n'), event.size() - 1) + 1);
  }
  Require(event.starts_with("data: "), "an event has data");
  return event.substr(6);
}

void CheckStream(std::string_view sse, size_t most, bool is_named) {
  Require(sse.size() <= most, "a stream is bounded by its events");
  Require(is_named || sse.ends_with("data: [DONE]\n\n"), "a stream has an end");
  while (!sse.empty()) {
    const size_t end = sse.find("\n\n");
    Require(end != std::string_view::npos, "a stream is of events");
    const std::string_view data = Data(sse.substr(0, end), is_named);
    Require(data == "[DONE]" || Json::Parse(data, "chunk").has_value(), "a chunk is JSON");
    sse.remove_prefix(end + 2);
  }
}

// Each event has its type as its name; the last one ends the message or is an error.
void CheckMessages(std::string_view sse, size_t most) {
  Require(sse.size() <= most, "a stream is bounded by its events");
  std::string_view name;
  while (!sse.empty()) {
    const size_t line = sse.find('\n');
    const size_t end = sse.find("\n\n");
    Require(sse.starts_with("event: ") && end != std::string_view::npos, "a stream is of events");
    name = sse.substr(7, line - 7);
    const std::string_view data = sse.substr(line + 1, end - line - 1);
    Require(data.starts_with("data: "), "an event has data");
    const auto json = Json::Parse(data.substr(6), "event");
    Require(json && json->GetStringOr("type", "") == name, "an event has the name of its type");
    sse.remove_prefix(end + 2);
  }
  Require(name == "message_stop" || name == "error", "a stream has an end");
}

// `repeated`: bytes of the body, which answers of /v1/responses repeat in part, three times a
// stream.
void Answer(ApiRequest request, bool stream, size_t repeated, ByteSource choose) {
  request.reply.stream = stream;
  const ApiReply reply = request.reply;
  ApiRunning running(std::move(request), &Model(), "7", 11);
  for (size_t i = 0; i < running.prompts(); ++i) running.TakePrompt(i);
  std::vector<size_t> open(reply.prompts.size() * static_cast<size_t>(reply.n));
  for (size_t i = 0; i < open.size(); ++i) open[i] = i;
  std::string sse;
  int64_t events = 0;
  while (!running.done()) {
    const auto at = static_cast<size_t>(choose.Below(static_cast<int32_t>(open.size())));
    const bool last = ++events > kMostEvents || choose.empty() || choose.Below(4) == 0;
    const size_t index = open[at];
    const TokenEvent event = Event(reply, index, last, &choose);
    running.Add(index / static_cast<size_t>(reply.n), event, &sse);
    if (last) open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
  }
  // Three chunks of an event, each with the model's name, its tokens and their alternatives.
  const size_t most =
      static_cast<size_t>(events + 2) * 3 * (8 * reply.model.size() + 65'536) + 64 * repeated;
  if (stream && reply.endpoint == ApiEndpoint::kMessages) {
    CheckMessages(sse, most);
  } else if (stream) {
    CheckStream(sse, most, reply.endpoint == ApiEndpoint::kResponses);
  } else if (!running.error()) {
    const std::string body = running.Body();
    Require(body.size() <= most, "an answer is bounded by its events");
    Require(Json::Parse(body, "answer").has_value(), "an answer is JSON");
  }
}

}  // namespace
}  // namespace latte::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace latte;
  if (size == 0) return 0;
  constexpr ApiEndpoint kEndpoints[] = {ApiEndpoint::kChat, ApiEndpoint::kCompletions,
                                        ApiEndpoint::kResponses, ApiEndpoint::kMessages};
  const ApiEndpoint endpoint = kEndpoints[data[0] % std::size(kEndpoints)];
  const auto [body, events] = fuzz::Cut(fuzz::AsText(data + 1, size - 1), '\0');
  const auto request = ParseApiBody(endpoint, body, fuzz::Model(), fuzz::kRules);
  if (!request) {
    fuzz::CheckError(request.error());
    return 0;
  }
  fuzz::CheckRequest(*request);
  const std::vector<uint8_t> bytes(events.begin(), events.end());
  for (const bool stream : {false, true})
    fuzz::Answer(*request, stream, body.size(), testing_support::ByteSource(bytes));
  return 0;
}
