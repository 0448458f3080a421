#include "src/api/request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/api/common/neutral_fields.h"
#include "src/base/file.h"
#include "src/base/json_out.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::request_test {
namespace {

constexpr auto kChat = ApiEndpoint::kChat;
constexpr auto kCompletions = ApiEndpoint::kCompletions;
const std::string kHi = R"("messages":[{"role":"user","content":"Hi"}])";

const ApiModel& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

Result<ApiRequest> Parse(ApiEndpoint endpoint, const std::string& members) {
  return ParseApiRequest(endpoint, Json::Parse("{" + members + "}", "body").value(), Tiny());
}

std::vector<int32_t> Ids(const std::string& text) {
  return Tiny().tokenizer.Encode(text, {.add_bos = true, .parse_special = true}).value();
}

TEST(ApiRequest, DefaultsAreTheModelsAndTheApis) {
  const ApiRequest text = Parse(kCompletions, R"("prompt":"Once")").value();
  EXPECT_EQ(text.requests.front().tokens, Ids("Once"));
  EXPECT_EQ(text.requests.front().prompt, "Once");
  EXPECT_DOUBLE_EQ(text.requests.front().sampling.temperature, 0.8);  // generation_config.json
  EXPECT_EQ(text.requests.front().stop.max_tokens, 16);
  EXPECT_EQ(text.requests.front().logprobs, -1);
  EXPECT_EQ(text.requests.front().prompt_logprobs, -1);
  EXPECT_TRUE(text.requests.front().stop.tokens.empty());
  EXPECT_EQ(text.reply.model, "tiny");

  const ApiRequest chat = Parse(kChat, kHi).value();
  EXPECT_EQ(chat.requests.front().tokens, Ids("<｜User｜>Hi<｜Assistant｜>"));
  EXPECT_GT(chat.requests.front().stop.max_tokens, 1 << 20);
  EXPECT_FALSE(chat.requests.front().stop.tokens.empty());
  EXPECT_TRUE(
      Parse(kChat, kHi + R"(,"ignore_eos":true)").value().requests.front().stop.tokens.empty());
}

TEST(ApiRequest, EveryFieldArrives) {
  const ApiRequest parsed = Parse(kCompletions, R"(
      "model":"m","prompt":[1,2],"max_tokens":9,"min_tokens":2,"temperature":0.5,"top_p":0.25,
      "top_k":7,"min_p":0.125,"repetition_penalty":1.5,"presence_penalty":-1,
      "frequency_penalty":2,"logit_bias":{"5":-100,"17":1.5},"seed":-1,"stop":["a","b"],
      "stop_token_ids":[4],"ignore_eos":true,"n":3,"logprobs":4,"prompt_logprobs":1,"echo":true,
      "priority":-8,"cache_salt":"s","stream":true,"user":"u")")
                                .value();
  const Request& r = parsed.requests.front();
  EXPECT_EQ(r.tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(r.prompt, "");
  EXPECT_EQ(r.stop.max_tokens, 9);
  EXPECT_EQ(r.stop.min_tokens, 2);
  EXPECT_EQ(r.stop.strings, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(r.stop.tokens, (std::vector<int32_t>{4}));
  EXPECT_TRUE(r.stop.ignore_eos);
  EXPECT_DOUBLE_EQ(r.sampling.temperature, 0.5);
  EXPECT_DOUBLE_EQ(r.sampling.top_p, 0.25);
  EXPECT_EQ(r.sampling.top_k, 7);
  EXPECT_DOUBLE_EQ(r.sampling.min_p, 0.125);
  EXPECT_DOUBLE_EQ(r.sampling.repetition_penalty, 1.5);
  EXPECT_DOUBLE_EQ(r.sampling.presence_penalty, -1);
  EXPECT_DOUBLE_EQ(r.sampling.frequency_penalty, 2);
  EXPECT_EQ(r.sampling.seed, UINT64_MAX);
  const std::vector<std::pair<int32_t, float>> bias = {{17, 1.5F}, {5, -100.F}};  // sorted by key
  EXPECT_EQ(r.sampling.logit_bias, bias);
  EXPECT_EQ(r.n, 3);
  EXPECT_EQ(r.logprobs, 4);
  EXPECT_EQ(r.prompt_logprobs, 4);  // for the echo; the reply has its own
  EXPECT_EQ(parsed.reply.prompt_logprobs, 1);
  EXPECT_TRUE(r.echo);
  EXPECT_EQ(r.priority, 0);  // as ApiRules say
  EXPECT_EQ(r.cache_salt, "s");
  EXPECT_TRUE(parsed.reply.stream);
  EXPECT_EQ(parsed.reply.model, "m");
  EXPECT_EQ(parsed.reply.n, 3);
  EXPECT_EQ(parsed.reply.prompts.front().first_token, 1);
  EXPECT_FALSE(parsed.reply.prompts.front().first_is_bos);
}

// In every API that has the field: who asks to go before others gets what the operator allows.
TEST(ApiRequest, PrioritiesHaveAFloor) {
  const auto priorities = [](ApiEndpoint endpoint, int asked, const ApiRules& rules) {
    const std::string prompt = endpoint == kCompletions ? R"("prompt":["Once","Twice"])"
                               : endpoint == kChat      ? kHi
                                                        : R"("input":"Hi")";
    const std::string body = fmt::format(R"({{{},"priority":{}}})", prompt, asked);
    const ApiRequest parsed = ParseApiBody(endpoint, body, Tiny(), rules).value();
    const int first = parsed.requests.front().priority;
    for (const Request& request : parsed.requests) EXPECT_EQ(request.priority, first);
    EXPECT_EQ(parsed.notes.size(), first == asked ? 0U : 1U) << body;
    return first;
  };
  for (const auto endpoint : {kChat, kCompletions, ApiEndpoint::kResponses}) {
    EXPECT_EQ(priorities(endpoint, -1000, {}), 0);
    EXPECT_EQ(priorities(endpoint, INT32_MIN, {}), 0);
    EXPECT_EQ(priorities(endpoint, 0, {}), 0);
    EXPECT_EQ(priorities(endpoint, 1000, {}), 1000);
    EXPECT_EQ(priorities(endpoint, -1000, {.min_priority = -10}), -10);
    EXPECT_EQ(priorities(endpoint, -7, {.min_priority = -10}), -7);
    EXPECT_EQ(priorities(endpoint, 0, {.min_priority = 5}), 5);
    EXPECT_EQ(priorities(endpoint, INT32_MIN, {.min_priority = INT32_MIN}), INT32_MIN);
  }
}

TEST(ApiRequest, LogprobsOfChatsAreASwitchAndACount) {
  const auto logprobs = [](const std::string& members) {
    return Parse(kChat, kHi + members).value().requests.front().logprobs;
  };
  EXPECT_EQ(logprobs(R"(,"logprobs":false)"), -1);
  EXPECT_EQ(logprobs(R"(,"logprobs":0,"top_logprobs":0)"), -1);
  EXPECT_EQ(logprobs(R"(,"logprobs":false,"top_logprobs":0)"), -1);
  EXPECT_EQ(logprobs(R"(,"logprobs":true)"), 0);
  EXPECT_EQ(logprobs(R"(,"logprobs":true,"top_logprobs":20)"), 20);
}

TEST(ApiRequest, FormsOfPromptAndMessages) {
  EXPECT_EQ(Parse(kCompletions, R"("prompt":["Once"])").value().requests.front().tokens,
            Ids("Once"));
  EXPECT_EQ(Parse(kCompletions, R"("prompt":[[7]])").value().requests.front().tokens,
            std::vector<int32_t>{7});
  EXPECT_EQ(Parse(kCompletions, R"("prompt":"","top_k":-1)").value().requests.front().tokens,
            Ids(""));
  const auto ids = [](const std::string& messages) {
    return Parse(kChat, R"("messages":)" + messages).value().requests.front().tokens;
  };
  EXPECT_EQ(ids(R"([{"role":"user","content":[{"type":"text","text":"a"},
                                              {"type":"text","text":"b"}]}])"),
            Ids("<｜User｜>a\nb<｜Assistant｜>"));
  // Text of a user never becomes a special token.
  EXPECT_GT(ids(R"([{"role":"user","content":"<｜User｜>"}])").size(), 4U);
}

// Expects that `more` does not change how a body is parsed.
void ExpectNeutral(ApiEndpoint endpoint, const std::string& more) {
  const std::string base = endpoint == kChat ? kHi : R"("prompt":"a")";
  const ApiRequest plain = Parse(endpoint, base).value();
  const auto parsed = Parse(endpoint, base + "," + more);
  ASSERT_TRUE(parsed) << more << ": " << parsed.error().message;
  EXPECT_EQ(parsed->requests.front().tokens, plain.requests.front().tokens) << more;
  EXPECT_EQ(parsed->requests.front().stop.max_tokens, plain.requests.front().stop.max_tokens)
      << more;
  EXPECT_EQ(parsed->requests.front().stop.strings, plain.requests.front().stop.strings) << more;
  EXPECT_EQ(parsed->requests.front().logprobs, plain.requests.front().logprobs) << more;
  EXPECT_EQ(parsed->requests.front().n, plain.requests.front().n) << more;
  EXPECT_EQ(parsed->requests.front().keep_special, plain.requests.front().keep_special) << more;
  EXPECT_EQ(parsed->requests.front().sampling.logit_bias,
            plain.requests.front().sampling.logit_bias)
      << more;
}

TEST(ApiRequest, ValuesThatChangeNothingAreAsGoodAsAbsent) {
  for (const ApiEndpoint endpoint : {kChat, kCompletions})
    for (const char* more : {R"("user":"u")",
                             R"("metadata":{"a":"b"})",
                             R"("store":true)",
                             R"("store":false)",
                             R"("service_tier":"auto")",
                             R"("service_tier":"default")",
                             R"("safety_identifier":"s")",
                             R"("prompt_cache_key":"k")",
                             R"("stream_options":{"include_usage":true,"x":null})",
                             R"("stream":false)",
                             R"("response_format":{"type":"text","json_schema":null})",
                             R"("n":1)",
                             R"("presence_penalty":0)",
                             R"("frequency_penalty":0.0)",
                             R"("stop":[])",
                             R"("stop_token_ids":[])",
                             R"("logit_bias":{})",
                             R"("logit_bias":[])",
                             R"("skip_special_tokens":true)",
                             R"("spaces_between_special_tokens":true)",
                             R"("include_stop_str_in_output":false)",
                             R"("use_beam_search":false)",
                             R"("length_penalty":1.0)",
                             R"("bad_words":[])",
                             R"("detokenize":true)"})
      ExpectNeutral(endpoint, more);
  for (const char* more :
       {R"("tools":[])", R"("functions":[])", R"("tool_choice":"none")", R"("tool_choice":"auto")",
        R"("parallel_tool_calls":true)", R"("modalities":["text"])", R"("modalities":[])",
        R"("logprobs":0)", R"("logprobs":false,"top_logprobs":0)", R"("verbosity":"medium")",
        R"("prediction":{"type":"content","content":"x"})", R"("add_generation_prompt":true)",
        R"("continue_final_message":false)", R"("include_reasoning":true)", R"("documents":[])",
        R"("chat_template_kwargs":{})", R"("reasoning_effort":"none")"})
    ExpectNeutral(kChat, more);
  for (const char* more : {R"("best_of":1)", R"("suffix":"")", R"("echo":false)",
                           R"("logprobs":false)", R"("add_special_tokens":true)"})
    ExpectNeutral(kCompletions, more);
  EXPECT_TRUE(Parse(kCompletions, R"("prompt":"a","best_of":3,"n":3)"));
  EXPECT_EQ(Parse(kChat, kHi + R"(,"max_tokens":5,"max_completion_tokens":5)")
                .value()
                .requests.front()
                .stop.max_tokens,
            5);
}

TEST(ApiRequest, UnknownFieldsGetASuggestion) {
  const auto message = [](ApiEndpoint endpoint, const std::string& members) {
    const auto parsed = Parse(endpoint, members);
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_TRUE(message(kCompletions, R"("promt":"Once")").ends_with("did you mean prompt?"));
  EXPECT_TRUE(message(kCompletions, kHi).ends_with("; /v1/chat/completions has it"));
  EXPECT_TRUE(message(kChat, kHi + R"(,"prompt":"Once")").ends_with("; /v1/completions has it"));
}

TEST(ApiRequest, NullIsAbsentWhateverTheField) {
  for (const char* field : {"model",
                            "max_tokens",
                            "min_tokens",
                            "temperature",
                            "top_p",
                            "top_k",
                            "min_p",
                            "repetition_penalty",
                            "presence_penalty",
                            "frequency_penalty",
                            "logit_bias",
                            "seed",
                            "stop",
                            "stop_token_ids",
                            "ignore_eos",
                            "n",
                            "logprobs",
                            "prompt_logprobs",
                            "priority",
                            "cache_salt",
                            "stream",
                            "stream_options",
                            "user",
                            "tools",
                            "tool_choice",
                            "response_format",
                            "best_of",
                            "suffix",
                            "echo",
                            "functions",
                            "audio",
                            "web_search_options",
                            "guided_json",
                            "reasoning_effort",
                            "thinking",
                            "chat_template_kwargs",
                            "what_no_one_knows"}) {
    ExpectNeutral(kChat, fmt::format(R"("{}":null)", field));
    ExpectNeutral(kCompletions, fmt::format(R"("{}":null)", field));
  }
  ExpectNeutral(kChat, R"("logit_bias":{"5":null},"thinking":{"type":null},
                          "chat_template_kwargs":{"enable_thinking":null})");
}

TEST(ApiRequest, IgnoredFieldsAreReportedAndDocumented) {
  const ApiRequest parsed =
      Parse(kChat, kHi + R"(,"user":"u","store":false,"seed":1,"tools":[],"metadata":null)")
          .value();
  EXPECT_EQ(parsed.ignored, (std::vector<std::string>{"store", "user"}));
  const std::string docs = ReadFile(LATTE_SOURCE_DIR "/docs/api_fields.md", 1 << 20).value();
  for (const std::string& name : IgnoredFieldNames())
    EXPECT_NE(docs.find('`' + name + '`'), std::string::npos) << name;
}

TEST(ApiRequest, SpecialTokensAreKeptOnDemand) {
  const ApiRequest kept = Parse(kChat, kHi + R"(,"skip_special_tokens":false)").value();
  EXPECT_TRUE(kept.requests.front().keep_special);
  EXPECT_TRUE(kept.reply.keep_special);
}

struct Bad {
  ApiEndpoint endpoint;
  std::string members;
  std::string named;  // a part of the message
};

TEST(ApiRequest, WhatIsWrongIsNamed) {
  const std::string p = R"("prompt":"a",)";
  const std::string m = kHi + ",";
  const std::vector<Bad> table = {
      {kCompletions, "", "prompt"},
      {kCompletions, R"("prompt":null)", "prompt"},
      {kCompletions, R"("prompt":7)", "prompt"},
      {kCompletions, R"("prompt":[])", "prompt"},
      {kCompletions, R"("prompt":["a",[1]])", "prompt.1"},
      {kCompletions, R"("prompt":[[1],"a"])", "prompt.1"},
      {kCompletions, R"("prompt":[[1],2])", "prompt.1"},
      {kCompletions, R"("prompt":["a",null])", "prompt.1"},
      {kCompletions, R"("prompt":[[1],[]])", "prompt.1"},
      {kCompletions, R"("prompt":[["a"]])", "prompt.0.0"},
      {kCompletions, R"("prompt":["a",7])", "prompt.1"},
      {kCompletions, R"("prompt":[[1],[-2]])", "prompt.1.0"},
      {kCompletions, R"("prompt":[1,"a"])", "prompt.1"},
      {kCompletions, R"("prompt":[1.5])", "prompt.0"},
      {kCompletions, R"("prompt":[-1])", "prompt.0"},
      {kCompletions, R"("prompt":[2147483648])", "prompt.0"},
      {kCompletions, p + R"("messages":[])", "messages"},
      {kCompletions, p + R"("max_completion_tokens":1)", "max_completion_tokens"},
      {kCompletions, p + R"("top_logprobs":1)", "top_logprobs"},
      {kCompletions, p + R"("best_of":2)", "best_of"},
      {kCompletions, p + R"("best_of":1,"n":2)", "best_of"},
      {kCompletions, p + R"("suffix":"end")", "suffix"},
      {kCompletions, p + R"("include_stop_str_in_output":true)", "include_stop_str_in_output"},
      {kCompletions, p + R"("use_beam_search":true)", "use_beam_search"},
      {kCompletions, p + R"("tools":[])", "tools"},
      {kCompletions, p + R"("reasoning_effort":"low")", "reasoning_effort"},
      {kCompletions, p + R"("skip_special_tokens":0)", "skip_special_tokens"},
      {kCompletions, p + R"("temprature":0)", "temprature"},
      {kCompletions, p + R"("model":7)", "model"},
      {kCompletions, p + R"("user":7)", "user"},
      {kCompletions, p + R"("temperature":"0")", "temperature"},
      {kCompletions, p + R"("temperature":-0.1)", "temperature"},
      {kCompletions, p + R"("temperature":101)", "temperature"},
      {kCompletions, p + R"("top_p":0)", "top_p"},
      {kCompletions, p + R"("top_p":1.1)", "top_p"},
      {kCompletions, p + R"("top_k":-2)", "top_k"},
      {kCompletions, p + R"("top_k":1.5)", "top_k"},
      {kCompletions, p + R"("min_p":2)", "min_p"},
      {kCompletions, p + R"("repetition_penalty":0)", "repetition_penalty"},
      {kCompletions, p + R"("presence_penalty":3)", "presence_penalty"},
      {kCompletions, p + R"("frequency_penalty":-3)", "frequency_penalty"},
      {kCompletions, p + R"("logit_bias":[1])", "logit_bias"},
      {kCompletions, p + R"("logit_bias":{"a":1})", "'a'"},
      {kCompletions, p + R"("logit_bias":{"07":1})", "'07'"},
      {kCompletions, p + R"("logit_bias":{"-1":1})", "'-1'"},
      {kCompletions, p + R"("logit_bias":{"7":101})", "logit_bias.7"},
      {kCompletions, p + R"("logit_bias":{"7":"1"})", "logit_bias.7"},
      {kCompletions, p + R"("max_tokens":-2)", "max_tokens"},
      {kCompletions, p + R"("max_tokens":4.5)", "max_tokens"},
      {kCompletions, p + R"("max_tokens":1e300)", "max_tokens"},
      {kCompletions, p + R"("max_tokens":true)", "max_tokens"},
      {kCompletions, p + R"("max_tokens":3,"min_tokens":4)", "min_tokens"},
      {kCompletions, p + R"("min_tokens":-1)", "min_tokens"},
      {kCompletions, p + R"("seed":9223372036854775808)", "seed"},
      {kCompletions, p + R"("stop":7)", "stop"},
      {kCompletions, p + R"("stop":[7])", "stop.0"},
      {kCompletions, p + R"("stop":"")", "stop"},
      {kCompletions, p + R"("stop_token_ids":"7")", "stop_token_ids"},
      {kCompletions, p + R"("stop_token_ids":[4294967296])", "stop_token_ids.0"},
      {kCompletions, p + R"("ignore_eos":1)", "ignore_eos"},
      {kCompletions, p + R"("n":0)", "n:"},
      {kCompletions, p + R"("n":65)", "n:"},
      {kCompletions, p + R"("n":4294967297)", "'n'"},
      {kCompletions, p + R"("logprobs":true)", "logprobs"},
      {kCompletions, p + R"("logprobs":21)", "logprobs"},
      {kCompletions, p + R"("logprobs":-1)", "logprobs"},
      {kCompletions, p + R"("prompt_logprobs":-1)", "prompt_logprobs"},
      {kCompletions, p + R"("echo":"yes")", "echo"},
      {kCompletions, p + R"("priority":1.5)", "priority"},
      {kCompletions, p + R"("priority":2147483648)", "priority"},
      {kCompletions, p + R"("cache_salt":1)", "cache_salt"},
      {kCompletions, p + R"("stream":"no")", "stream"},
      {kChat, "", "messages"},
      {kChat, R"("messages":[])", "messages"},
      {kChat, R"("messages":"Hi")", "messages"},
      {kChat, R"("messages":["Hi"])", "messages.0"},
      {kChat, R"("messages":[{"content":"a"}])", "role"},
      {kChat, R"("messages":[{"role":"robot","content":"a"}])", "robot"},
      {kChat, R"("messages":[{"role":"user"}])", "content"},
      {kChat, R"("messages":[{"role":"user","content":7}])", "content"},
      {kChat, R"("messages":[{"role":"user","content":"a","image":1}])", "image"},
      {kChat, R"("messages":[{"role":"user","content":[{"type":"image_url"}]}])", "image_url"},
      {kChat, R"("messages":[{"role":"user","content":["a"]}])", "content.0"},
      {kChat, R"("messages":[{"role":"assistant","tool_calls":{"a":1}}])", "tool_calls"},
      {kChat, R"("messages":[{"role":"assistant","tool_calls":[{}]}])", "function"},
      {kChat, m + R"("prompt":"a")", "prompt"},
      {kChat, m + R"("echo":true)", "echo"},
      {kChat, m + R"("best_of":1)", "best_of"},
      {kChat, m + R"("tools":[{"type":"function"}])", "tools"},
      {kChat, m + R"("tool_choice":"required")", "tools to choose from"},
      {kChat, m + R"("tool_choice":"any")", "tools to choose from"},
      {kChat, m + R"("tool_choice":"some")", "'some'"},
      {kChat, m + R"("tool_choice":7)", "tool_choice"},
      {kChat, m + R"("tool_choice":{"type":"allowed_tools"})", "'allowed_tools'"},
      {kChat, m + R"("tools":{"a":1})", "array of tools"},
      {kChat, m + R"("tools":[{"type":"web_search"}])", "'web_search'"},
      {kChat, m + R"("tools":[{"function":{"name":""}}])", "tools.0.function"},
      {kChat, m + R"("tools":[{"function":{"name":"f","parameters":7}}])", "parameters"},
      {kChat, m + R"("tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}])", "two"},
      {kChat, m + R"("parallel_tool_calls":1)", "parallel_tool_calls"},
      {kChat, m + R"("tool_choice":{"type":"function"})", "tool_choice"},
      {kChat, m + R"("modalities":["text","audio"])", "modalities"},
      {kChat, m + R"("audio":{"voice":"ash"})", "audio"},
      {kChat, m + R"("service_tier":"flex")", "service_tier"},
      {kChat, m + R"("stream_options":{"include_usage":1})", "stream_options"},
      {kChat, m + R"("verbosity":"low")", "verbosity"},
      {kChat, m + R"("continue_final_message":true)", "continue_final_message"},
      {kChat, m + R"("add_generation_prompt":false)", "add_generation_prompt"},
      {kChat, m + R"("chat_template":"x")", "chat_template"},
      {kChat, m + R"("response_format":{"type":"text","schema":{}})", "response_format"},
      {kChat, m + R"("metadata":"x")", "metadata"},
      {kChat, m + R"("response_format":{"type":"json_schema"})", "response_format"},
      {kChat, m + R"("logprobs":2)", "logprobs"},
      {kChat, m + R"("top_logprobs":2)", "top_logprobs"},
      {kChat, m + R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {kChat, m + R"("max_tokens":1,"max_completion_tokens":2)", "max_completion_tokens"},
  };
  for (const Bad& bad : table) {
    const Result<ApiRequest> parsed = Parse(bad.endpoint, bad.members);
    ASSERT_FALSE(parsed) << bad.members;
    EXPECT_EQ(HttpStatus(parsed.error().code), 400) << bad.members;
    EXPECT_NE(parsed.error().message.find(bad.named), std::string::npos) << bad.members << "\n"
                                                                         << parsed.error().message;
  }
}

// Clients of languages without integers write them with a fraction of zero.
TEST(ApiRequest, WholeNumbersMayBeWrittenAsFractions) {
  const auto completion = [](const std::string& members) {
    return Parse(kCompletions, R"("prompt":"a",)" + members)->requests.front();
  };
  EXPECT_EQ(completion(R"("max_tokens":4.0)").stop.max_tokens, 4);
  EXPECT_EQ(completion(R"("max_tokens":1e2)").stop.max_tokens, 100);
  EXPECT_EQ(completion(R"("top_k":40.0)").sampling.top_k, 40);
  EXPECT_EQ(completion(R"("seed":7.0)").sampling.seed, 7U);
  EXPECT_EQ(completion(R"("n":2.0,"best_of":2)").n, 2);
  EXPECT_EQ(completion(R"("stop_token_ids":[5.0])").stop.tokens, std::vector<int32_t>{5});
  EXPECT_EQ(completion(R"("logprobs":2.0)").logprobs, 2);
  const Request chat = Parse(kChat, kHi + R"(,"max_completion_tokens":4.0)")->requests.front();
  EXPECT_EQ(chat.stop.max_tokens, 4);
}

TEST(ApiRequest, MinusOneTokenIsNoLimit) {
  const auto most = [](ApiEndpoint endpoint, const std::string& members) {
    return Parse(endpoint, members)->requests.front().stop.max_tokens;
  };
  const int64_t none = most(kChat, kHi);
  EXPECT_GE(none, int64_t{1} << 30);
  EXPECT_EQ(most(kChat, kHi + R"(,"max_tokens":-1)"), none);
  EXPECT_EQ(most(kChat, kHi + R"(,"max_completion_tokens":-1.0)"), none);
  EXPECT_EQ(most(kCompletions, R"("prompt":"a","max_tokens":-1)"), none);
}

// Where stop strings count in a chat is the engine's to find.
TEST(ApiRequest, OnlyChatsHaveReasoning) {
  EXPECT_EQ(Parse(kChat, kHi)->requests.front().reasoning, "possible");
  EXPECT_EQ(Parse(kCompletions, R"("prompt":"a")")->requests.front().reasoning, "none");
}

TEST(ApiRequest, ABodyIsAnObjectAndAModelNeedsAChatFormatForChatsOnly) {
  EXPECT_FALSE(ParseApiRequest(kChat, Json::Parse("[]", "body").value(), Tiny()));
  ApiModel model = Tiny();
  model.chat = Unsupported("no chat template");
  const auto code = [&](ApiEndpoint endpoint, const std::string& members) {
    const auto parsed =
        ParseApiRequest(endpoint, Json::Parse("{" + members + "}", "body").value(), model);
    return parsed ? Code::kOk : parsed.error().code;
  };
  EXPECT_EQ(code(kChat, kHi), Code::kUnsupported);
  EXPECT_EQ(code(kCompletions, R"("prompt":"a")"), Code::kOk);
}

}  // namespace
}  // namespace latte::request_test
