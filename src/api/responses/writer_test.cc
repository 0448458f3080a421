#include "src/api/responses/writer.h"

#include <gtest/gtest.h>

#include "src/api/running.h"
#include "tests/support/named_events.h"
#include "tests/support/transcripts.h"

namespace latte::responses_writer_test {
namespace {

using testing_support::Describe;
using testing_support::kToolFormats;
using testing_support::NamedEvents;
using testing_support::ReadTranscripts;
using testing_support::Transcript;
using testing_support::TranscriptAnswer;

const ApiModel& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

ApiRunning Running(bool stream, ApiReply reply = {}, ResponsesReply responses = {}) {
  ApiRequest request;
  request.requests.resize(1);
  responses.settings["temperature"] = 0.5;
  reply.endpoint = ApiEndpoint::kResponses;
  reply.stream = stream;
  reply.model = "m";
  reply.responses = std::make_shared<const ResponsesReply>(std::move(responses));
  request.reply = std::move(reply);
  return {std::move(request), &Tiny(), "7", 11};
}

TokenEvent Event(std::string text, std::optional<FinishReason> finish = {}) {
  TokenEvent event;
  event.token = 5;
  event.text = std::move(text);
  event.prompt_tokens = 3;
  event.cached_tokens = 2;
  event.generated_tokens = 1;
  event.finish = finish;
  return event;
}

// The documents of a stream; checks their numbers, too.
std::vector<JsonOut> Events(std::string_view sse) {
  std::vector<JsonOut> out = NamedEvents(sse);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i]["sequence_number"], i);
  return out;
}

std::vector<std::string> Types(const std::vector<JsonOut>& events) {
  std::vector<std::string> out;
  for (const JsonOut& event : events) {
    const std::string type =
        event["type"].get<std::string>().substr(std::string("response.").size());
    if (out.empty() || out.back() != type) out.push_back(type);
  }
  return out;
}

using Names = std::vector<std::string>;

TEST(ResponsesWriter, ABodyHasItemsAndUsage) {
  ApiRunning running = Running(false, {.in_thought = true});
  running.Add(0, Event("so</think>yes", FinishReason::kStop), nullptr);
  EXPECT_EQ(
      running.Body(),
      R"({"id":"resp_7","object":"response","created_at":11,"status":"completed","error":null,)"
      R"("incomplete_details":null,"model":"m","output":[{"id":"rs_7_0","type":"reasoning",)"
      R"("summary":[],"content":[{"type":"reasoning_text","text":"so"}],"status":"completed"},)"
      R"({"id":"msg_7_1","type":"message","role":"assistant","content":[{"type":"output_text",)"
      R"("annotations":[],"logprobs":[],"text":"yes"}],"status":"completed"}],"temperature":0.5,)"
      R"("usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":0},)"
      R"("output_tokens":1,)"
      R"("output_tokens_details":{"reasoning_tokens":1},"total_tokens":4}})");
}

TEST(ResponsesWriter, AStreamHasTheOrderOfTheApi) {
  ApiRunning running = Running(true, {.in_thought = true});
  std::string sse;
  for (const char* text : {"s", "o", "</think>", "y", "es"}) running.Add(0, Event(text), &sse);
  running.Add(0, Event("", FinishReason::kStop), &sse);
  const std::vector<JsonOut> events = Events(sse);
  EXPECT_EQ(
      Types(events),
      (Names{"created", "in_progress", "output_item.added", "content_part.added",
             "reasoning_text.delta", "reasoning_text.done", "content_part.done", "output_item.done",
             "output_item.added", "content_part.added", "output_text.delta", "output_text.done",
             "content_part.done", "output_item.done", "completed"}));
  EXPECT_EQ(events[0]["response"]["status"], "in_progress");
  EXPECT_TRUE(events[0]["response"]["usage"].is_null());
  ApiRunning whole = Running(false, {.in_thought = true});
  TokenEvent all = Event("so</think>yes", FinishReason::kStop);
  whole.Add(0, all, nullptr);
  JsonOut body = JsonOut::parse(whole.Body());
  JsonOut last = events.back()["response"];
  body.erase("usage");
  last.erase("usage");
  EXPECT_EQ(Dump(last), Dump(body));
}

// Clients count time since the last event, for which comments are nothing.
TEST(ResponsesWriter, AStreamThatWaitsHasEvents) {
  ApiRunning running = Running(true);
  std::string sse;
  for (int i = 0; i < 3; ++i) running.KeepAlive(&sse);
  std::vector<JsonOut> events = Events(sse);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(Types(events), (Names{"created", "in_progress"}));
  for (const JsonOut& event : events) {
    EXPECT_EQ(event["response"]["status"], "in_progress");
    EXPECT_EQ(event["response"]["id"], "resp_7");
  }
  EXPECT_EQ(sse.find(": waiting"), std::string::npos);

  running.Add(0, Event("ye"), &sse);
  running.KeepAlive(&sse);
  running.Add(0, Event("s", FinishReason::kStop), &sse);
  events = Events(sse);
  EXPECT_EQ(Types(events),
            (Names{"created", "in_progress", "output_item.added", "content_part.added",
                   "output_text.delta", "in_progress", "output_text.delta", "output_text.done",
                   "content_part.done", "output_item.done", "completed"}));
  EXPECT_EQ(events.back()["response"]["output"][0]["content"][0]["text"], "yes");
}

TEST(ResponsesWriter, AStreamThatWaitedAndFailedBeginsOnce) {
  ApiRunning running = Running(true);
  std::string sse;
  running.KeepAlive(&sse);
  running.Fail({Code::kUnavailable, "gone"}, &sse);
  EXPECT_EQ(Types(Events(sse)), (Names{"created", "in_progress", "failed"}));
}

TEST(ResponsesWriter, ALimitMakesTheAnswerAndItsLastItemIncomplete) {
  for (const bool stream : {false, true}) {
    ApiRunning running = Running(stream);
    std::string sse;
    running.Add(0, Event("on", FinishReason::kLength), &sse);
    if (stream) {
      EXPECT_EQ(Events(sse).back()["type"], "response.incomplete");
    }
    const JsonOut body = stream ? Events(sse).back()["response"] : JsonOut::parse(running.Body());
    EXPECT_EQ(body["status"], "incomplete");
    EXPECT_EQ(body["incomplete_details"]["reason"], "max_output_tokens");
    EXPECT_EQ(body["output"][0]["status"], "incomplete");
  }
}

TEST(ResponsesWriter, AnAnswerWithoutTextIsAnEmptyMessage) {
  for (const bool stream : {false, true}) {
    ApiRunning running = Running(stream);
    std::string sse;
    running.Add(0, Event("", FinishReason::kStop), &sse);
    const JsonOut body = stream ? Events(sse).back()["response"] : JsonOut::parse(running.Body());
    ASSERT_EQ(body["output"].size(), 1U);
    EXPECT_EQ(body["output"][0]["content"][0]["text"], "");
  }
}

TEST(ResponsesWriter, AnErrorEndsTheStreamAtAnyTime) {
  for (const bool begun : {false, true}) {
    ApiRunning running = Running(true);
    std::string sse;
    if (begun) running.Add(0, Event("on"), &sse);
    running.Fail({Code::kUnavailable, "gone"}, &sse);
    const std::vector<JsonOut> events = Events(sse);
    EXPECT_EQ(events.front()["type"], "response.created");
    EXPECT_EQ(events.back()["type"], "response.failed");
    const JsonOut& response = events.back()["response"];
    EXPECT_EQ(response["status"], "failed");
    EXPECT_EQ(Dump(response["error"]), R"({"code":"server_error","message":"gone"})");
    EXPECT_EQ(response["output"].size(), begun ? 1U : 0U);
  }
}

TEST(ResponsesWriter, ReasoningIsGivenBackIfAsked) {
  ResponsesReply responses;
  responses.gives_reasoning_back = true;
  ApiRunning running = Running(false, {.in_thought = true}, responses);
  running.Add(0, Event("so</think>yes", FinishReason::kStop), nullptr);
  EXPECT_EQ(JsonOut::parse(running.Body())["output"][0]["encrypted_content"], "latte-plain:so");
}

// The items of an answer, joined.
TranscriptAnswer AnswerOf(const JsonOut& output) {
  TranscriptAnswer out;
  for (const JsonOut& item : output) {
    if (item["type"] == "reasoning") out.reasoning += item["content"][0]["text"];
    if (item["type"] == "message") out.content += item["content"][0]["text"];
    if (item["type"] == "function_call")
      out.calls.push_back(
          {item["call_id"], item["name"], item["arguments"], item["status"] == "completed"});
  }
  return out;
}

TranscriptAnswer Expected(const Transcript& one) {
  TranscriptAnswer out = one.answer;
  for (size_t i = 0; i < out.calls.size(); ++i)
    if (out.calls[i].id.empty()) out.calls[i].id = "call_7_0_" + std::to_string(i);
  if (!out.calls.empty() && out.content.find_first_not_of(" \n") == std::string::npos)
    out.content.clear();
  return out;
}

// Joins the deltas of a stream and compares them with its whole items.
void CheckDeltas(const std::vector<JsonOut>& events, const std::string& name) {
  std::map<size_t, std::string> texts;
  std::map<size_t, std::string> ids;
  for (const JsonOut& event : events) {
    const std::string type = event["type"];
    if (type == "response.output_item.added") {
      EXPECT_TRUE(texts.emplace(event["output_index"], "").second) << name;
      ids[event["output_index"]] = event["item"]["id"];
    }
    if (event.contains("item_id")) {
      EXPECT_EQ(event["item_id"], ids.at(event["output_index"]));
    }
    if (type.ends_with(".delta")) texts.at(event["output_index"]) += event["delta"];
    if (type != "response.output_item.done") continue;
    const JsonOut& item = event["item"];
    EXPECT_EQ(item["id"], ids.at(event["output_index"]));
    EXPECT_EQ(texts.at(event["output_index"]),
              item["type"] == "function_call" ? item["arguments"] : item["content"][0]["text"])
        << name;
  }
}

TEST(ResponsesWriter, CallsOfEveryFormatAreItems) {
  for (const ToolFormat format : kToolFormats)
    for (const Transcript& one : ReadTranscripts(format))
      for (const bool stream : {false, true}) {
        ApiReply reply{.in_thought = one.in_thought};
        reply.calls = one.format;
        reply.functions = one.functions;
        ApiRunning running = Running(stream, reply);
        std::string sse;
        for (size_t at = 0; at < one.text.size();) {
          size_t end = at + 1;
          while (end < one.text.size() &&
                 (static_cast<unsigned char>(one.text[end]) & 0xC0) == 0x80)
            ++end;
          running.Add(0, Event(one.text.substr(at, end - at)), &sse);
          at = end;
        }
        running.Add(0, Event("", one.cut ? FinishReason::kLength : FinishReason::kStop), &sse);
        const std::string name = std::string(Name(format)) + ": " + one.name;
        if (stream) CheckDeltas(Events(sse), name);
        const JsonOut body =
            stream ? Events(sse).back()["response"] : JsonOut::parse(running.Body());
        EXPECT_EQ(Describe(AnswerOf(body["output"])), Describe(Expected(one))) << name;
        EXPECT_EQ(body["status"], one.cut ? "incomplete" : "completed") << name;
      }
}

// The model, or a stop token, ends the answer inside a text: the call must not look whole.
TEST(ResponsesWriter, ACallThatTheEndCutsIsIncomplete) {
  for (const bool stream : {false, true}) {
    ApiReply reply;
    reply.calls = ToolFormat::kKimiK2;
    ApiRunning running = Running(stream, reply);
    std::string sse;
    running.Add(0,
                Event("<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
                      "<|tool_call_argument_begin|>{\"a\": \"b",
                      FinishReason::kStop),
                &sse);
    const JsonOut body = stream ? Events(sse).back()["response"] : JsonOut::parse(running.Body());
    EXPECT_EQ(body["output"][0]["status"], "incomplete");
    EXPECT_EQ(body["output"][0]["arguments"], "{\"a\": \"b");
  }
}

// The model calls functions; the client sees what it has offered.
TEST(ResponsesWriter, ACustomToolGetsATextThatIsNoJson) {
  ResponsesReply responses;
  responses.tools["patch"] = {"patch", "", true};
  ApiReply reply;
  reply.calls = ToolFormat::kKimiK2;
  ApiRunning running = Running(false, reply, responses);
  std::string sse;
  running.Add(0,
              Event("<|tool_calls_section_begin|><|tool_call_begin|>functions.patch:0"
                    "<|tool_call_argument_begin|>*** Begin\n{\"a\"<|tool_call_end|>",
                    FinishReason::kStop),
              &sse);
  EXPECT_EQ(JsonOut::parse(running.Body())["output"][0]["input"], "*** Begin\n{\"a\"");
}

TEST(ResponsesWriter, CallsHaveTheToolsOfTheClient) {
  ResponsesReply responses;
  responses.tools["patch"] = {"patch", "", true};
  responses.tools["ns__f"] = {"f", "ns", false};
  ApiReply reply;
  reply.calls = ToolFormat::kKimiK2;
  const std::string text =
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.patch:0<|tool_call_argument_begin|>"
      R"({"input": "a\nb"})"
      "<|tool_call_end|><|tool_call_begin|>functions.ns__f:1<|tool_call_argument_begin|>{}"
      "<|tool_call_end|><|tool_calls_section_end|>";
  ApiRunning running = Running(true, reply, responses);
  std::string sse;
  running.Add(0, Event(text, FinishReason::kStop), &sse);
  const std::vector<JsonOut> events = Events(sse);
  const JsonOut output = events.back()["response"]["output"];
  ASSERT_EQ(output.size(), 2U);
  EXPECT_EQ(Dump(output[0]),
            R"({"id":"ctc_7_0","type":"custom_tool_call","call_id":"functions.patch:0",)"
            R"("name":"patch","input":"a\nb","status":"completed"})");
  EXPECT_EQ(Dump(output[1]),
            R"({"id":"fc_7_1","type":"function_call","call_id":"functions.ns__f:1","name":"f",)"
            R"("namespace":"ns","arguments":"{}","status":"completed"})");
  EXPECT_EQ(Types(events),
            (Names{"created", "in_progress", "output_item.added", "custom_tool_call_input.delta",
                   "custom_tool_call_input.done", "output_item.done", "output_item.added",
                   "function_call_arguments.delta", "function_call_arguments.done",
                   "output_item.done", "completed"}));
}

}  // namespace
}  // namespace latte::responses_writer_test
