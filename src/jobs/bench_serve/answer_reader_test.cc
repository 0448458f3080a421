#include "src/jobs/bench_serve/answer_reader.h"

#include <gtest/gtest.h>

namespace latte::answer_reader_test {
namespace {

ServeRecord Read(int status, const std::string& type, const std::vector<std::string>& pieces) {
  AnswerReader reader(/*planned_prompt=*/5);
  HttpResponse head;
  head.status = status;
  head.content_type = type;
  reader.OnHead(head);
  double now = 0;
  for (const std::string& piece : pieces) reader.OnBody(piece, now += 1);
  reader.OnEnd({}, HttpFailure::kNone, now + 1);
  return reader.record();
}

ServeRecord ReadStream(const std::vector<std::string>& events, bool done = true) {
  std::vector<std::string> pieces;
  for (const std::string& event : events) pieces.push_back("data: " + event + "\n\n");
  if (done) pieces.emplace_back("data: [DONE]\n\n");
  return Read(200, "text/event-stream; charset=utf-8", pieces);
}

using Times = std::vector<double>;

TEST(AnswerReader, StreamOfCompletions) {
  const ServeRecord record = ReadStream(
      {R"({"choices":[{"index":0,"text":"a"}]})", R"({"choices":[{"index":0,"text":""}]})",
       R"({"choices":[{"index":0,"text":"b","finish_reason":"length"}]})",
       R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,)"
       R"("prompt_tokens_details":{"cached_tokens":4}}})"});
  EXPECT_TRUE(record.ok()) << record.error;
  EXPECT_EQ(record.event_s, (Times{1, 2, 3}));  // an empty text is a token whose text is to come
  EXPECT_EQ(record.end_s, 3);
  EXPECT_EQ(record.prompt_tokens, 9);
  EXPECT_EQ(record.output_tokens, 3);
  EXPECT_EQ(record.cached_tokens, 4);
}

// The first event of a chat has no text, the last one neither; reasoning counts.
TEST(AnswerReader, StreamOfChat) {
  const ServeRecord record =
      ReadStream({R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})",
                  R"({"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]})",
                  R"({"choices":[{"index":0,"delta":{"content":"hi"}}]})",
                  R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})"});
  EXPECT_TRUE(record.ok()) << record.error;
  EXPECT_EQ(record.event_s, (Times{2, 3}));
  EXPECT_FALSE(record.counted);
  EXPECT_EQ(record.prompt_tokens, 5);
  EXPECT_EQ(record.output_tokens, 2);
}

TEST(AnswerReader, WithoutDoneAndWithComments) {
  const std::string event = R"(data: {"choices":[{"text":"a"}]})";
  const ServeRecord record =
      Read(200, "text/event-stream",
           {": ping\n\n", event.substr(0, 20), event.substr(20) + "\r\n", "\r\n", ": ping\n\n"});
  EXPECT_TRUE(record.ok()) << record.error;
  EXPECT_EQ(record.event_s, Times{4});
}

TEST(AnswerReader, WholeBody) {
  const ServeRecord record =
      Read(200, "application/json",
           {R"({"choices":[{"message":{"role":"assistant","content":"hi"},"fini)",
            R"(sh_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}})"});
  EXPECT_TRUE(record.ok()) << record.error;
  EXPECT_TRUE(record.event_s.empty());
  EXPECT_EQ(record.end_s, 3);
  EXPECT_EQ(record.output_tokens, 2);
}

TEST(AnswerReader, Errors) {
  const auto expect = [](const ServeRecord& record, const char* kind, const char* word) {
    EXPECT_EQ(record.error_kind, kind) << record.error;
    EXPECT_NE(record.error.find(word), std::string::npos) << record.error;
  };
  expect(Read(429, "application/json", {R"({"error":{"message":"queue is full"}})"}), "HTTP 429",
         "queue is full");
  expect(Read(502, "text/html", {"<h1>Bad\n gateway</h1>"}), "HTTP 502", "Bad gateway");
  expect(Read(401, "application/json", {R"({"detail":"no key"})"}), "HTTP 401", "no key");
  expect(Read(503, "", {}), "HTTP 503", "Service Unavailable");
  expect(ReadStream({R"({"choices":[{"text":"a"}]})", R"({"error":{"message":"out of pages"}})"}),
         "error in the stream", "out of pages");
  expect(ReadStream({"{nonsense"}), "bad event", "event");
  expect(ReadStream({"7"}), "bad event", "object");
  expect(ReadStream({}, /*done=*/false), "empty answer", "without");
  expect(Read(200, "text/html", {"<html>"}), "bad answer", "event");
  expect(Read(200, "application/json", {"{}"}), "bad answer", "choice");
  AnswerReader reader(1);
  reader.OnEnd(Fail(Code::kUnavailable, "refused"), HttpFailure::kConnect, 1);
  expect(reader.record(), "no connection", "refused");
}

}  // namespace
}  // namespace latte::answer_reader_test
