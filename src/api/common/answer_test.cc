#include "src/api/common/answer.h"

#include <gtest/gtest.h>

#include "src/api/common/error.h"
#include "src/api/completions/completion_body.h"
#include "src/base/json_out.h"

namespace latte::response_test {
namespace {

const Tokenizer& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model.tokenizer;
}

TokenEvent Event(int choice, std::string text, std::optional<FinishReason> finish = {}) {
  TokenEvent event;
  event.choice = choice;
  event.text = std::move(text);
  event.prompt_tokens = 3;
  event.generated_tokens = 1;
  event.finish = finish;
  return event;
}

// A token whose bytes are not a whole character.
int32_t PartOfAText() { return Tiny().Encode("🙂").value().front(); }

TEST(ApiAnswer, IsDoneWhenEveryChoiceIs) {
  ApiAnswer answer({.endpoint = ApiEndpoint::kCompletions, .model = "m", .n = 2});
  answer.Add(Event(0, "a"));
  answer.Add(Event(1, "x", FinishReason::kStop));
  EXPECT_FALSE(answer.done());
  answer.Add(Event(0, "b", FinishReason::kLength));
  ASSERT_TRUE(answer.done());
  EXPECT_EQ(CompletionBody(answer, Tiny(), "7", 11),
            R"({"id":"cmpl-7","object":"text_completion","created":11,"model":"m","choices":[)"
            R"({"index":0,"text":"ab","logprobs":null,"finish_reason":"length"},)"
            R"({"index":1,"text":"x","logprobs":null,"finish_reason":"stop"}],)"
            R"("usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,)"
            R"("prompt_tokens_details":{"cached_tokens":0}}})");
}

TEST(ApiAnswer, ReasoningOfAChatStandsApart) {
  ApiAnswer answer({.endpoint = ApiEndpoint::kChat, .in_thought = true});
  answer.Add(Event(0, "so</think>yes", FinishReason::kStop));
  const JsonOut body = JsonOut::parse(CompletionBody(answer, Tiny(), "7", 11));
  EXPECT_EQ(body["id"], "chatcmpl-7");
  EXPECT_EQ(Dump(body["choices"][0]["message"]),
            R"({"role":"assistant","content":"yes","refusal":null,"reasoning_content":"so"})");
}

TEST(ApiAnswer, LogprobsOfAChatHaveBothLists) {
  ApiReply reply{.endpoint = ApiEndpoint::kChat};
  reply.logprobs = 0;
  ApiAnswer answer(reply);
  TokenEvent event = Event(0, "a", FinishReason::kStop);
  event.logprobs = {{Tiny().Encode("a").value().front(), -1}, {}};
  answer.Add(event);
  EXPECT_EQ(Dump(JsonOut::parse(CompletionBody(answer, Tiny(), "7", 11))["choices"][0]["logprobs"]),
            R"({"content":[{"token":"a","logprob":-1.0,"bytes":[97],"top_logprobs":[]}],)"
            R"("refusal":null})");
}

TEST(ApiAnswer, TellsTheFirstFailure) {
  ApiAnswer answer({.endpoint = ApiEndpoint::kChat});
  TokenEvent event = Event(0, "", FinishReason::kError);
  event.error = {Code::kUnsupported, "f16"};
  answer.Add(event);
  ASSERT_TRUE(answer.done() && answer.error());
  EXPECT_EQ(Dump(OpenAiError(*answer.error())),
            R"({"error":{"message":"f16","type":"invalid_request_error","param":null,)"
            R"("code":"unsupported"}})");
}

TEST(ApiAnswer, OffsetsCountWhatTheTextShows) {
  const int32_t bos = *Tiny().bos_id();
  const int32_t a = Tiny().Encode("a").value().front();
  for (const bool keep_special : {false, true}) {
    ApiReply reply;
    reply.endpoint = ApiEndpoint::kCompletions;
    reply.logprobs = 0;
    reply.keep_special = keep_special;
    ApiAnswer answer(reply);
    for (const int32_t token : {a, bos, a}) {
      TokenEvent event = Event(0, "");
      event.logprobs = {{token, -1}, {}};
      answer.Add(event);
    }
    answer.Add(Event(0, "", FinishReason::kStop));
    const JsonOut logprobs =
        JsonOut::parse(CompletionBody(answer, Tiny(), "7", 11))["choices"][0]["logprobs"];
    EXPECT_EQ(logprobs["tokens"][1], std::string(Tiny().TokenBytes(bos)));  // listed anyway
    EXPECT_EQ(logprobs["text_offset"][2], keep_special ? 22 : 1);
  }
}

TEST(ApiAnswer, LogprobsOfAnEchoBeginWithThePrompt) {
  ApiReply reply;
  reply.endpoint = ApiEndpoint::kCompletions;
  reply.logprobs = 1;
  reply.prompt_logprobs = 0;
  reply.echo = true;
  reply.prompts.front().first_token = Tiny().Encode("é").value().front();
  ApiAnswer answer(reply);
  const int32_t part = PartOfAText();
  const int32_t a = Tiny().Encode("a").value().front();
  TokenEvent event = Event(0, "text", FinishReason::kLength);
  event.prompt_logprobs = {{{a, -1}, {{part, -0.5}, {a, -1}}}};
  event.logprobs = {{a, -2}, {{a, -2}}};
  answer.Add(event);
  const JsonOut choice = JsonOut::parse(CompletionBody(answer, Tiny(), "7", 11))["choices"][0];
  EXPECT_EQ(choice["logprobs"]["tokens"].size(), 3U);
  EXPECT_EQ(Dump(choice["logprobs"]["token_logprobs"]), "[null,-1.0,-2.0]");
  EXPECT_EQ(Dump(choice["logprobs"]["text_offset"]), "[0,1,2]");
  const JsonOut& top = choice["logprobs"]["top_logprobs"];
  EXPECT_TRUE(top[0].is_null());
  EXPECT_EQ(top[1].size(), 2U);  // the most probable token, and the token itself
  EXPECT_TRUE(top[1].begin().key().starts_with("bytes:\\x")) << top[1].begin().key();
  EXPECT_EQ(Dump(top[2]), R"({"a":-2.0})");
  const std::string id = std::to_string(a);
  EXPECT_EQ(Dump(choice["prompt_logprobs"]),
            R"([null,{")" + id + R"(":{"logprob":-1.0,"decoded_token":"a"}}])");
}

}  // namespace
}  // namespace latte::response_test
