#include "src/api/messages/writer.h"

#include <gtest/gtest.h>

#include "src/api/messages/call_id.h"
#include "src/api/messages/error.h"
#include "src/api/running.h"
#include "src/base/json_out.h"
#include "tests/support/named_events.h"
#include "tests/support/transcripts.h"

namespace latte::anthropic_writer_test {
namespace {

using testing_support::kToolFormats;
using testing_support::NamedEvents;
using testing_support::ReadTranscripts;
using testing_support::Transcript;

const ApiModel& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

ApiRunning Running(bool stream, std::optional<ToolFormat> calls = {}, bool in_thought = false) {
  ApiRequest request;
  request.requests.resize(1);
  request.reply.endpoint = ApiEndpoint::kMessages;
  request.reply.model = "m";
  request.reply.stream = stream;
  request.reply.calls = calls;
  request.reply.in_thought = in_thought;
  return {std::move(request), &Tiny(), "7", 11};
}

TokenEvent Event(std::string text, int64_t generated = 1) {
  TokenEvent event;
  event.token = 5;
  event.text = std::move(text);
  event.prompt_tokens = 10;
  event.cached_tokens = 4;
  event.generated_tokens = generated;
  return event;
}

TokenEvent Last(FinishReason reason, std::string stop_string = "") {
  TokenEvent event = Event("", 3);
  event.token.reset();
  event.finish = reason;
  event.stop_string = std::move(stop_string);
  return event;
}

// As the clients of the API build a message of events: a block is open between its start and its
// stop, and only one at a time. Arguments are joined to the text "input".
JsonOut Message(const std::vector<JsonOut>& events) {
  JsonOut message;
  bool open = false;
  for (const JsonOut& event : events) {
    const std::string type = event["type"];
    if (type == "message_start") {
      EXPECT_TRUE(message.is_null());
      message = event["message"];
    } else if (type == "content_block_start") {
      EXPECT_FALSE(std::exchange(open, true));
      EXPECT_EQ(event["index"], message["content"].size());
      message["content"].push_back(event["content_block"]);
      if (event["content_block"]["type"] == "tool_use") message["content"].back()["input"] = "";
    } else if (type == "content_block_delta") {
      EXPECT_TRUE(open);
      EXPECT_EQ(event["index"].get<size_t>() + 1, message["content"].size());
      JsonOut& block = message["content"].back();
      for (const auto& [key, value] : event["delta"].items()) {
        if (key == "type") continue;
        JsonOut& part = block[key == "partial_json" ? "input" : key];
        part = part.get<std::string>() + value.get<std::string>();
      }
    } else if (type == "content_block_stop") {
      EXPECT_TRUE(std::exchange(open, false));
    } else if (type == "message_delta") {
      EXPECT_FALSE(open);
      message.update(event["delta"]);
      message["usage"].update(event["usage"]);
    } else {
      EXPECT_EQ(type, "message_stop");
    }
  }
  EXPECT_EQ(events.back()["type"], "message_stop");
  return message;
}

std::string Stream(ApiRunning running, const std::vector<TokenEvent>& events) {
  std::string sse;
  for (const TokenEvent& event : events) running.Add(0, event, &sse);
  EXPECT_TRUE(running.done());
  return sse;
}

JsonOut Whole(ApiRunning running, const std::vector<TokenEvent>& events) {
  std::string sse;
  for (const TokenEvent& event : events) running.Add(0, event, &sse);
  EXPECT_EQ(sse, "");
  return JsonOut::parse(running.Body());
}

TEST(AnthropicWriter, AnAnswerIsAMessage) {
  EXPECT_EQ(Dump(Whole(Running(false), {Event("Hel"), Event("lo", 2), Last(FinishReason::kStop)})),
            R"({"id":"msg_7","type":"message","role":"assistant","model":"m",)"
            R"("content":[{"type":"text","text":"Hello","citations":null}],)"
            R"("stop_reason":"end_turn","stop_sequence":null,"stop_details":null,)"
            R"("container":null,"usage":{"input_tokens":6,"cache_creation_input_tokens":0,)"
            R"("cache_read_input_tokens":4,"output_tokens":3,)"
            R"("output_tokens_details":{"thinking_tokens":0},"server_tool_use":null,)"
            R"("cache_creation":null,"inference_geo":null,"service_tier":"standard"}})");
}

TEST(AnthropicWriter, AStreamHasTheEventsOfTheApi) {
  EXPECT_EQ(
      Stream(Running(true), {Event("Hel"), Event("lo", 2), Last(FinishReason::kStop)}),
      "event: message_start\n"
      R"(data: {"type":"message_start","message":{"id":"msg_7","type":"message",)"
      R"("role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,)"
      R"("stop_details":null,"container":null,)"
      R"("usage":{"input_tokens":6,"cache_creation_input_tokens":0,)"
      R"("cache_read_input_tokens":4,"output_tokens":1,)"
      R"("output_tokens_details":{"thinking_tokens":0},"server_tool_use":null,)"
      R"("cache_creation":null,"inference_geo":null,"service_tier":"standard"}}})"
      "\n\nevent: content_block_start\n"
      R"(data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"",)"
      R"("citations":null}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}})"
      "\n\nevent: content_block_stop\n"
      R"(data: {"type":"content_block_stop","index":0})"
      "\n\nevent: message_delta\n"
      R"(data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,)"
      R"("stop_details":null,"container":null},)"
      R"("usage":{"input_tokens":6,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,)"
      R"("output_tokens":3,"output_tokens_details":{"thinking_tokens":0},"server_tool_use":null}})"
      "\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

TEST(AnthropicWriter, TellsWhyTheAnswerEnded) {
  const auto reason = [](const TokenEvent& last) {
    const JsonOut whole = Whole(Running(false), {Event("a"), last});
    const JsonOut streamed = Message(NamedEvents(Stream(Running(true), {Event("a"), last})));
    EXPECT_EQ(streamed, whole);
    return whole["stop_reason"].get<std::string>() + " " + Dump(whole["stop_sequence"]);
  };
  EXPECT_EQ(reason(Last(FinishReason::kStop)), "end_turn null");
  EXPECT_EQ(reason(Last(FinishReason::kStop, "\n\nQ:")), R"(stop_sequence "\n\nQ:")");
  EXPECT_EQ(reason(Last(FinishReason::kLength)), "max_tokens null");
}

constexpr auto kKimi = ToolFormat::kKimiK2;
constexpr auto kBegin = "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0";
constexpr auto kArguments = R"(<|tool_call_argument_begin|>{"a": "}"}<|tool_call_end|>)";
constexpr auto kEnd = "<|tool_calls_section_end|>";

TEST(AnthropicWriter, ReasoningTextAndCallsAreBlocks) {
  const std::vector<TokenEvent> events = {
      Event("so"),
      Event("</think>\n\n"),
      Event(" Wait."),
      Event(kBegin),
      Event(kArguments),
      Event("<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|>"),
      Event(kEnd),
      Last(FinishReason::kStop)};
  const JsonOut whole = Whole(Running(false, kKimi, true), events);
  EXPECT_EQ(Dump(whole["content"]),
            R"([{"type":"thinking","thinking":"so","signature":"latte"},)"
            R"({"type":"text","text":"\n\n Wait.","citations":null},)"
            R"({"type":"tool_use","id":"functions-2Ef-3A0","name":"f","input":{"a":"}"},)"
            R"("caller":{"type":"direct"}},)"
            R"({"type":"tool_use","id":"functions-2Eg-3A1","name":"g","input":{},)"
            R"("caller":{"type":"direct"}}])");
  EXPECT_EQ(whole["stop_reason"], "tool_use");
  JsonOut streamed = Message(NamedEvents(Stream(Running(true, kKimi, true), events)));
  for (JsonOut& block : streamed["content"])
    if (block["type"] == "tool_use")
      block["input"] = JsonOut::parse(block["input"].get<std::string>());
  EXPECT_EQ(streamed, whole);
}

// Content has been cut after a call: the client must run the call.
TEST(AnthropicWriter, ACallAndThenAStopStringIsACall) {
  const std::vector<TokenEvent> events = {Event(std::string(kBegin) + kArguments + kEnd + "So "),
                                          Last(FinishReason::kStop, "END")};
  const JsonOut whole = Whole(Running(false, kKimi), events);
  EXPECT_EQ(whole["stop_reason"], "tool_use");
  EXPECT_EQ(whole["stop_sequence"], nullptr);
  EXPECT_EQ(whole["content"][1]["input"]["a"], "}");
}

TEST(AnthropicWriter, ACallThatTheEndCutsIsNoObject) {
  const std::vector<TokenEvent> events = {
      Event(std::string(kBegin) + R"(<|tool_call_argument_begin|>{"a": "b)"),
      Last(FinishReason::kStop)};
  const JsonOut whole = Whole(Running(false, kKimi), events);
  EXPECT_EQ(whole["stop_reason"], "end_turn");
  EXPECT_EQ(Dump(whole["content"][0]["input"]), R"({"INVALID_JSON":"{\"a\": \"b"})");
  const JsonOut streamed = Message(NamedEvents(Stream(Running(true, kKimi), events)));
  EXPECT_EQ(streamed["content"][0]["input"], "{\"a\": \"b");
}

TEST(AnthropicWriter, WhiteSpaceAloneIsNoBlock) {
  const std::vector<TokenEvent> events = {Event("so</think>"), Event("\n\n"),
                                          Event(std::string(kBegin) + kArguments + kEnd),
                                          Last(FinishReason::kStop)};
  const JsonOut streamed = Message(NamedEvents(Stream(Running(true, kKimi, true), events)));
  ASSERT_EQ(streamed["content"].size(), 2U) << streamed;
  EXPECT_EQ(streamed["content"][1]["type"], "tool_use");
  EXPECT_EQ(Whole(Running(false, kKimi, true), events)["content"].size(), 2U);
  const std::vector<TokenEvent> blank = {Event("</think>\n"), Last(FinishReason::kStop)};
  EXPECT_EQ(Whole(Running(false, {}, true), blank)["content"], JsonOut::array());
  EXPECT_EQ(Message(NamedEvents(Stream(Running(true, {}, true), blank)))["content"],
            JsonOut::array());
}

// One event may end a call, and have text and the beginning of the next call.
TEST(AnthropicWriter, TextBetweenCallsIsABlockOfItsOwn) {
  const std::string call = std::string(kBegin) + kArguments + kEnd;
  const auto types = [&](const std::vector<TokenEvent>& events) {
    std::string out;
    const JsonOut message = Message(NamedEvents(Stream(Running(true, kKimi), events)));
    for (const JsonOut& block : message["content"]) out += block["type"].get<std::string>() + " ";
    return out;
  };
  EXPECT_EQ(types({Event(call), Event("and"), Event(call), Last(FinishReason::kStop)}),
            "tool_use text tool_use ");
  // The first argument token begins the call, and the other event has what follows it.
  const std::string begin = std::string(kBegin) + "<|tool_call_argument_begin|>{";
  EXPECT_EQ(types({Event(begin), Event("}<|tool_call_end|>" + std::string(kEnd) + "and" + call),
                   Last(FinishReason::kStop)}),
            "tool_use text tool_use ");
}

// Every transcript, in pieces of any length, is a message that clients can build.
void CheckTranscript(const Transcript& transcript, size_t step) {
  const std::string& text = transcript.text;
  std::vector<TokenEvent> events;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(at + step, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    events.push_back(Event(text.substr(at, end - at)));
    at = end;
  }
  events.push_back(Last(transcript.cut ? FinishReason::kLength : FinishReason::kStop));
  JsonOut message =
      Message(NamedEvents(Stream(Running(true, transcript.format, transcript.in_thought), events)));
  const JsonOut whole = Whole(Running(false, transcript.format, transcript.in_thought), events);
  JsonOut calls = JsonOut::array();
  for (JsonOut& block : message["content"])
    if (block["type"] == "tool_use") {
      block["input"] = AnthropicInput(block["input"].get<std::string>());
      calls.push_back(block);
    }
  JsonOut expected = JsonOut::array();
  for (const JsonOut& block : whole["content"])
    if (block["type"] == "tool_use") expected.push_back(block);
  EXPECT_EQ(calls, expected) << text;
  EXPECT_EQ(message["stop_reason"], whole["stop_reason"]) << text;
}

TEST(AnthropicWriter, EveryTranscriptIsAMessage) {
  for (const ToolFormat format : kToolFormats)
    for (const Transcript& transcript : ReadTranscripts(format))
      for (const size_t step : {size_t{1}, size_t{7}, transcript.text.size() + 1})
        CheckTranscript(transcript, step);
}

TEST(AnthropicCallId, HasTheCharactersOfTheApi) {
  const std::pair<std::string, std::string> table[] = {{"call_7_0_0", "call_7_0_0"},
                                                       {"functions.f:0", "functions-2Ef-3A0"},
                                                       {"a-b é", "a-2Db-20-C3-A9"},
                                                       {"", ""}};
  for (const auto& [id, encoded] : table) {
    EXPECT_EQ(EncodeCallId(id), encoded);
    EXPECT_EQ(DecodeCallId(encoded), id);
  }
  for (const char* other : {"toolu_01A09q90qw90lq917835lq9", "a-b", "a-", "a-2", "a-2d"})
    EXPECT_EQ(DecodeCallId(other), other);
}

TEST(AnthropicWriter, InputIsAlwaysAnObject) {
  EXPECT_EQ(Dump(AnthropicInput(R"({"b":1,"a":[1e3,"é"]})")), R"({"b":1,"a":[1000.0,"é"]})");
  EXPECT_EQ(Dump(AnthropicInput("{}")), "{}");
  for (const char* text :
       {"", "[1]", "7", "{\"a\":", "{'a': 1}", "{\"a\":1}}", "{\"a\":1,\"a\":2}"}) {
    const JsonOut input = AnthropicInput(text);
    EXPECT_EQ(input, (JsonOut{{"INVALID_JSON", text}})) << text;
    EXPECT_TRUE(input.is_object());
  }
}

TEST(AnthropicWriter, ErrorsEndAStream) {
  const std::string expected =
      "event: error\n"
      R"(data: {"type":"error","error":{"type":"overloaded_error","message":"gone"},)"
      R"("request_id":"7"})"
      "\n\n";
  std::string sse;
  ApiRunning running = Running(true);
  running.Fail({Code::kUnavailable, "gone"}, &sse);
  EXPECT_EQ(sse, expected);
  TokenEvent failed = Last(FinishReason::kError);
  failed.error = {Code::kUnavailable, "gone"};
  EXPECT_TRUE(Stream(Running(true), {Event("a"), failed}).ends_with(expected));
  std::string ping;
  Running(true).KeepAlive(&ping);
  EXPECT_EQ(ping, "event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

TEST(AnthropicError, HasTheNamesOfTheApi) {
  const std::pair<int, std::string_view> table[] = {
      {400, "invalid_request_error"}, {401, "authentication_error"},  {403, "permission_error"},
      {404, "not_found_error"},       {405, "invalid_request_error"}, {408, "timeout_error"},
      {413, "request_too_large"},     {429, "rate_limit_error"},      {500, "api_error"},
      {503, "overloaded_error"}};
  for (const auto& [status, type] : table) EXPECT_EQ(AnthropicErrorType(status), type) << status;
  EXPECT_EQ(
      Dump(AnthropicError(404, "no", "7")),
      R"({"type":"error","error":{"type":"not_found_error","message":"no"},"request_id":"7"})");
  EXPECT_EQ(AnthropicError(404, "no", "")["request_id"], nullptr);
}

}  // namespace
}  // namespace latte::anthropic_writer_test
