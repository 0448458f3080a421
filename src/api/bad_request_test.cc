// What clients send by mistake or in bad faith: each has one expected answer, and none of them ends
// the process. The numbers are the entries of a catalogue of bad requests.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "latte/engine.h"

#include "src/api/common/error.h"
#include "src/api/error_body.h"
#include "src/api/messages/error.h"
#include "src/api/request.h"
#include "src/base/json_out.h"
#include "src/engine/request/prompt_too_long.h"

namespace latte::bad_request_test {
namespace {

constexpr auto kChat = ApiEndpoint::kChat;
constexpr auto kText = ApiEndpoint::kCompletions;

const ApiModel& Tiny() {
  static const ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  return model;
}

struct Case {
  const char* id;
  ApiEndpoint endpoint;
  std::string body;
  std::optional<std::string> param;  // none: the error names no field
};

std::string Repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::string P(std::string_view members) { return fmt::format(R"({{"prompt":"a",{}}})", members); }
std::string M(std::string_view members) {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"Hi"}}],{}}})", members);
}
std::string Said(std::string_view messages) {
  return fmt::format(R"({{"messages":{}}})", messages);
}

void ExpectRefused(const Case& bad) {
  const Result<ApiRequest> parsed = ParseApiBody(bad.endpoint, bad.body, Tiny());
  const std::string shown = std::string(bad.id) + " " + bad.body.substr(0, 200);
  ASSERT_FALSE(parsed) << shown;
  const Error& error = parsed.error();
  EXPECT_EQ(HttpStatus(error.code), 400) << shown << ": " << error.message;
  EXPECT_EQ(DescribeError(error).param, bad.param) << shown << ": " << error.message;
  EXPECT_LE(error.message.size(), 2100U) << bad.id;
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
}

TEST(BadRequest, BodiesThatAreNoJson) {
  const Case table[] = {
      {"R01", kText, "", {}},
      {"R02", kText, "prompt=a", {}},
      {"R03", kText, R"(["a"])", {}},
      {"R04", kText, R"({"prompt":"a"} x)", {}},
      {"R04", kText, R"({"prompt":"a"}{})", {}},
      {"R05", kText, "{\"prompt\":\"\xFF\"}", {}},
      {"R06", kText, R"({"prompt":"\ud800"})", {}},
      {"R08", kText, Repeated("[", 100'000), {}},
      {"R08", kText, Repeated(R"({"a":)", 100'000), {}},
      {"R08", kChat, M(R"("metadata":)" + Repeated("[", 70) + Repeated("]", 70)), {}},
      {"R10", kText, R"({"prompt":"a","prompt":"b"})", {}},
      {"R11", kText, P(R"("temperature":NaN)"), {}},
      {"R11", kText, P(R"("temperature":0x10)"), {}},
      {"R11", kText, P(R"("temperature":Infinity)"), {}},
  };
  for (const Case& bad : table) ExpectRefused(bad);
  std::string keys = R"({"prompt":"a")";
  for (int i = 0; i < 1'000'000; ++i) keys += fmt::format(R"(,"k{}":1)", i);
  const auto many = ParseApiBody(kText, keys + "}", Tiny());
  ASSERT_FALSE(many);
  EXPECT_EQ(HttpStatus(many.error().code), 400);
}

TEST(BadRequest, PromptsAndMessages) {
  const Case table[] = {
      {"R13", kChat, "{}", "messages"},
      {"R13", kChat, Said("null"), "messages"},
      {"R13", kChat, Said("[]"), "messages"},
      {"R13", kChat, Said(R"("Hi")"), "messages"},
      {"R13", kChat, Said("[7]"), "messages.0"},
      {"R13", kChat, Said(R"([{"role":"robot","content":"a"}])"), "messages.0"},
      {"R13", kChat, Said(R"([{"role":7,"content":"a"}])"), "messages.0.role"},
      {"R13", kChat, Said(R"([{"role":"user","content":null}])"), "messages.0"},
      {"R13", kChat, Said(R"([{"role":"user","content":7}])"), "messages.0.content"},
      {"R13", kChat, Said(R"([{"role":"user","content":[{"type":"image_url"}]}])"),
       "messages.0.content.0"},
      {"R15", kText, R"({"prompt":[]})", "prompt"},
      {"R15", kText, R"({"prompt":[[]]})", "prompt.0"},
      {"R15", kText, R"({"prompt":["a",7]})", "prompt.1"},
      {"R15", kText, R"({"prompt":["a",[7]]})", "prompt.1"},
      {"R15", kText, R"({"prompt":[7,"a"]})", "prompt.1"},
      {"R15", kText, R"({"prompt":[[7],"a"]})", "prompt.1"},
      {"R15", kText, R"({"prompt":[[[7]]]})", "prompt.0.0"},
      {"R15", kText, R"({"prompt":{"a":1}})", "prompt"},
      {"R16", kText, R"({"prompt":[-1]})", "prompt.0"},
      {"R16", kText, R"({"prompt":[1099511627776]})", "prompt.0"},
      {"R16", kText, R"({"prompt":[1.0]})", "prompt.0"},
      {"R10", kText, R"({"prompt":[)" + Repeated("\"a\",", 1024) + R"("a"]})", "prompt"},
      {"R25", kText, R"({"n":64,"prompt":[)" + Repeated("\"a\",", 64) + R"("a"]})", "prompt"},
      {"R34", kChat, M(R"("tools":[{"type":"function","function":{"name":"f"}}])"), "tools"},
      {"R34", kChat, M(R"("response_format":{"type":"yaml"})"), "response_format"},
      {"R34", kChat, M(R"("response_format":{"type":"json_object","json_schema":{}})"),
       "response_format.json_schema"},
      {"R34", kChat, M(R"("response_format":{"type":"json_schema","json_schema":{"name":"a",
          "schema":{"type":"string","pattern":"(a+"}}})"),
       "response_format.json_schema.schema"},
      {"R34",
       kChat,
       M(R"("response_format":{"type":"json_schema","json_schema":{"name":"a",
          "schema":)" +
         Repeated(R"({"items":)", 70) + "{}" + Repeated("}", 70) + "}}"),
       {}},
      {"R34", kChat, M(R"("response_format":)" + Repeated("[", 60'000)), {}},
      {"R34", kText, P(R"("guided_regex":"(a+")"), "guided_regex"},
      {"R34", kText, P(R"("guided_regex":")" + Repeated("(", 30'000) + '"'), "guided_regex"},
      {"R34", kText, P(R"("guided_regex":"a","guided_choice":["a"])"), "guided_regex"},
      {"R34", kText, P(R"("guided_choice":[])"), "guided_choice"},
      {"R34", kText, P(R"("grammar":"root ::= root")"), "grammar"},
      {"R35", kChat, M(R"("chat_template":"{{ 1 }}")"), "chat_template"},
      {"R35", kChat, M(R"("chat_template_kwargs":{"messages":[]})"),
       "chat_template_kwargs.messages"},
      {"R36", kText, P(R"("dp_rank":1)"), "dp_rank"},
      {"R37", kText, P(R"("user":")" + Repeated("u", 1 << 20) + '"'), "user"},
      {"R42", kText, P(R"("temprature":1)"), "temprature"},
      {"R42", kText, P(R"("Top P":1)"), "Top P"},
  };
  for (const Case& bad : table) ExpectRefused(bad);
}

TEST(BadRequest, NumbersOutOfRange) {
  std::vector<Case> table = {
      {"R11", kText, P(R"("temperature":1e999)"), {}},
      {"R11", kText, P(R"("max_tokens":12345678901234567890)"), "max_tokens"},
      {"R20", kText, P(R"("temperature":1e30)"), "temperature"},
      {"R24", kText, P(R"("repetition_penalty":-1)"), "repetition_penalty"},
      {"R26", kText, P(R"("best_of":1000000)"), "best_of"},
      {"R27", kText, P(R"("logprobs":10000)"), "logprobs"},
      {"R27", kChat, M(R"("logprobs":true,"top_logprobs":-1)"), "top_logprobs"},
      {"R28", kText, P(R"("logit_bias":{"abc":1})"), "logit_bias"},
      {"R28", kText, P(R"("logit_bias":{"5":1e308})"), "logit_bias.5"},
      {"R29", kText, P(R"("stop":[)" + Repeated("\"x\",", 10'000) + R"("x"])"), "stop"},
      {"R29", kText, P(R"("stop":"")"), "stop"},
      {"R29", kText, P(R"("stop":")" + Repeated("x", 1 << 20) + '"'), "stop"},
      {"R29", kText, P(R"("stop":7)"), "stop"},
      {"R38", kText, P(R"("max_tokens":2,"min_tokens":3)"), "min_tokens"},
      {"R39", kText,
       R"({"echo":true,"logprobs":20,"n":64,"prompt":[)" + Repeated("5,", 4'000) + "5]}", "echo"},
  };
  std::string many = R"("logit_bias":{"0":1)";
  for (int i = 1; i < 100'000; ++i) many += fmt::format(R"(,"{}":1)", i);
  table.push_back({"R28", kText, P(many + "}"), "logit_bias"});
  const std::pair<const char*, std::vector<const char*>> fields[] = {
      {"max_tokens", {"-2", "\"5\"", "1.5", "true"}},
      {"temperature", {"-1", "\"1\"", "[1]"}},
      {"top_p", {"0", "1.1", "-0.1"}},
      {"top_k", {"-2", "1.5"}},
      {"min_p", {"1.1", "-1"}},
      {"presence_penalty", {"100", "-100"}},
      {"frequency_penalty", {"100", "-2.1"}},
      {"repetition_penalty", {"0"}},
      {"n", {"0", "-1", "1000000", "1.5"}},
      {"logprobs", {"-1"}},
      {"seed", {"18446744073709551616", "1.5"}},
      {"stream", {"\"yes\"", "1"}},
      {"priority", {"1e10", "2147483648"}},
  };
  for (const auto& [field, values] : fields)
    for (const char* value : values)
      table.push_back({field, kText, P(fmt::format(R"("{}":{})", field, value)), field});
  for (const Case& bad : table) ExpectRefused(bad);
}

TEST(BadRequest, WhatLooksBadAndIsNot) {
  const Case table[] = {
      {"R07", kText, R"({"prompt":"a\u0000b"})", {}},
      {"R11", kText, P(R"("temperature":-0)"), {}},
      {"R14", kText, R"({"prompt":""})", {}},
      {"R19", kText, P(R"("max_tokens":0)"), {}},
      {"R19", kText, P(R"("max_tokens":1000000000)"), {}},
      {"R19", kText, P(R"("max_tokens":null)"), {}},
      {"R20", kText, P(R"("temperature":1e-30)"), {}},
      {"R22", kText, P(R"("top_k":-1)"), {}},
      {"R22", kText, P(R"("top_k":1000000000)"), {}},
      {"R25", kText, P(R"("n":2,"stream":true)"), {}},
      {"R29", kText, P(R"("stop":null)"), {}},
      {"R31", kText, P(R"("seed":-1)"), {}},
      {"R33", kText, P(R"("stream_options":{"include_usage":true})"), {}},
      {"R34", kChat, M(R"("tools":[],"response_format":{"type":"text"})"), {}},
  };
  for (const Case& good : table) {
    const auto parsed = ParseApiBody(good.endpoint, good.body, Tiny());
    EXPECT_TRUE(parsed) << good.id << " " << parsed.error().message;
  }
}

// Agents shorten a conversation when they recognise the error: by its code and these words.
TEST(BadRequest, APromptThatIsTooLongIsNamedInTheWordsOfEachApi) {
  const Error error = PromptTooLongError({.tokens = 3003, .max_tokens = 2048});
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  const JsonOut chat = ErrorBody(ErrorForm::kOpenAi, error, "");
  EXPECT_EQ(chat["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(chat["error"]["type"], "invalid_request_error");
  const std::string words = chat["error"]["message"];
  EXPECT_NE(words.find("maximum context length is 2048 tokens"), std::string::npos) << words;
  EXPECT_NE(words.find("the prompt has 3003"), std::string::npos) << words;
  const JsonOut messages = ErrorBody(ErrorForm::kAnthropic, error, "req_1");
  EXPECT_EQ(messages["error"]["type"], "invalid_request_error");
  EXPECT_EQ(messages["error"]["message"], "prompt is too long: 3003 tokens > 2048 maximum");
  EXPECT_NE(AnthropicErrorEvent(error, "").find("prompt is too long: 3003 tokens > 2048 maximum"),
            std::string::npos);
  // A prompt of all tokens leaves none for the answer; clients expect the first number to be
  // larger.
  const Error full = PromptTooLongError({.tokens = 2048, .max_tokens = 2048});
  EXPECT_EQ(ErrorBody(ErrorForm::kAnthropic, full, "")["error"]["message"],
            "prompt is too long: 2048 tokens > 2047 maximum");
}

TEST(BadRequest, OnlyTheEnginesOwnWordsSayThatAPromptIsTooLong) {
  const std::string words = PromptTooLongError({.tokens = 9, .max_tokens = 8}).message;
  EXPECT_EQ(FindPromptTooLong({Code::kInvalidArgument, words})->tokens, 9);
  for (const Error& other : {Error{Code::kUnsupported, words},
                             {Code::kInvalidArgument, "x: " + words},
                             {Code::kInvalidArgument, words.substr(0, 50)},
                             {Code::kInvalidArgument, ""}}) {
    EXPECT_FALSE(FindPromptTooLong(other)) << other.message;
    EXPECT_NE(DescribeError(other).code, "context_length_exceeded") << other.message;
    EXPECT_EQ(ErrorBody(ErrorForm::kAnthropic, other, "")["error"]["message"], other.message);
  }
}

TEST(BadRequest, ATextThatCannotFitIsRefusedBeforeItIsTokenised) {
  constexpr int64_t kContext = 16;
  const size_t longest = Tiny().tokenizer.max_token_bytes();
  ASSERT_GT(longest, 1);
  const std::string fits((kContext - 4) * longest, 'a');
  const std::string too_long(kContext * longest + 1, 'a');
  const auto parse = [&](ApiEndpoint endpoint, const std::string& text) {
    const std::string message = R"([{"role":"user","content":")" + text + R"("}])";
    std::string body = R"({"model":"tiny","max_tokens":1,"messages":)" + message + "}";
    if (endpoint == ApiEndpoint::kCompletions) body = R"({"prompt":")" + text + R"("})";
    if (endpoint == ApiEndpoint::kResponses) body = R"({"input":)" + message + "}";
    return ParseApiBody(endpoint, body, Tiny(), {.max_model_len = kContext});
  };
  for (const ApiEndpoint endpoint : {ApiEndpoint::kChat, ApiEndpoint::kCompletions,
                                     ApiEndpoint::kResponses, ApiEndpoint::kMessages}) {
    EXPECT_TRUE(parse(endpoint, fits)) << parse(endpoint, fits).error().message;
    const auto refused = parse(endpoint, too_long);
    ASSERT_FALSE(refused) << Url(endpoint);
    const auto found = FindPromptTooLong(refused.error());
    ASSERT_TRUE(found) << refused.error().message;
    EXPECT_TRUE(found->at_least);
    EXPECT_GE(found->tokens, kContext + 1);
    EXPECT_EQ(found->max_tokens, kContext);
  }
  EXPECT_TRUE(
      ParseApiBody(ApiEndpoint::kCompletions, R"({"prompt":")" + too_long + R"("})", Tiny(), {}))
      << "without a known context, the engine decides";
}

// What needs the model's vocabulary or the size of the cache is refused by the engine.
TEST(BadRequest, TheEngineRefusesTheRest) {
  EngineOptions options;
  options.model = "tiny";
  options.max_tokens = 256;
  options.threads = 1;
  const auto engine = Engine::Create(options);
  ASSERT_TRUE(engine) << engine.error().message;
  struct Refusal {
    const char* id;
    std::string body;
    std::string code;
    std::optional<std::string> param;
  };
  const Refusal table[] = {
      {"R16", R"({"prompt":[100000000]})", "invalid_argument", "prompt"},
      {"R17", R"({"prompt":[)" + Repeated("5,", 10'000) + "5]}", "context_length_exceeded", {}},
      {"R28", P(R"("logit_bias":{"100000000":1})"), "invalid_argument", "logit_bias"},
  };
  for (const Refusal& bad : table) {
    const auto parsed = ParseApiBody(kText, bad.body, Tiny());
    ASSERT_TRUE(parsed) << bad.id << parsed.error().message;
    const auto id = (*engine)->Submit(parsed->requests.front());
    ASSERT_FALSE(id) << bad.id;
    EXPECT_EQ(HttpStatus(id.error().code), 400) << id.error().message;
    EXPECT_EQ(DescribeError(id.error()).code, bad.code) << id.error().message;
    EXPECT_EQ(DescribeError(id.error()).param, bad.param) << id.error().message;
  }
}

// The limits of fields that docs/limits.md lists.
constexpr std::string_view kHi = R"("messages":[{"role":"user","content":"Hi"}],"max_tokens":9)";

// The message of the refusal; empty: the request is taken.
std::string Refusal(ApiEndpoint endpoint, const std::string& body, const ApiRules& rules = {}) {
  const auto parsed = ParseApiBody(endpoint, body, Tiny(), rules);
  if (parsed) return "";
  EXPECT_EQ(HttpStatus(parsed.error().code), 400) << parsed.error().message;
  return parsed.error().message;
}

std::string Tool(const std::string& name) {
  return fmt::format(R"({{"type":"function","function":{{"name":"{}"}}}})", name);
}

std::string ChatWithTools(int count) {
  std::string tools = Tool("f");
  for (int i = 1; i < count; ++i) tools += "," + Tool(fmt::format("f{}", i));
  return fmt::format(R"({{{},"tools":[{}]}})", kHi, tools);
}

TEST(BodyLimits, HoldForEveryEndpoint) {
  std::string values = "0";
  for (int i = 0; i < 2'000'000; ++i) values += ",0";
  const std::string deep = std::string(70, '[') + std::string(70, ']');
  for (const auto endpoint : {kChat, kText, ApiEndpoint::kResponses, ApiEndpoint::kMessages}) {
    EXPECT_NE(Refusal(endpoint, fmt::format(R"({{{},"metadata":[{}]}})", kHi, values))
                  .find("more than 2000000 elements"),
              std::string::npos);
    EXPECT_NE(Refusal(endpoint, fmt::format(R"({{{},"metadata":{}}})", kHi, deep))
                  .find("deeper than 64 levels"),
              std::string::npos);
  }
}

TEST(BodyLimits, AServerMayAllowLess) {
  const ApiRules rules{.max_n = 2, .max_prompts = 2, .max_logprobs = 3};
  const auto of = [&](const char* members) {
    return Refusal(kText, fmt::format(R"({{"prompt":"a",{}}})", members), rules);
  };
  EXPECT_EQ(of(R"("n":2,"logprobs":3)"), "");
  EXPECT_NE(of(R"("n":3)").find("at most 2 answers, found 3"), std::string::npos);
  EXPECT_NE(of(R"("logprobs":4)").find("found 4"), std::string::npos);
  EXPECT_NE(of(R"("prompt_logprobs":4)").find("found 4"), std::string::npos);
  EXPECT_EQ(Refusal(kText, R"({"prompt":["a","b"]})", rules), "");
  EXPECT_NE(Refusal(kText, R"({"prompt":["a","b","c"]})", rules).find("at most 2 prompts, found 3"),
            std::string::npos);
}

TEST(BodyLimits, Tools) {
  EXPECT_NE(Refusal(kChat, ChatWithTools(1025)).find("at most 1024 tools, found 1025"),
            std::string::npos);
  EXPECT_EQ(Refusal(kChat, ChatWithTools(1024)).find("at most"), std::string::npos);
  const auto named = [](size_t bytes) {
    return Refusal(kChat,
                   fmt::format(R"({{{},"tools":[{}]}})", kHi, Tool(std::string(bytes, 'f'))));
  };
  EXPECT_EQ(named(256).find("a name of"), std::string::npos);
  EXPECT_NE(named(257).find("a name of 1 to 256 bytes, found 257"), std::string::npos);
}

TEST(BodyLimits, Choices) {
  std::string choices = R"("a")";
  for (int i = 0; i < 1024; ++i) choices += R"(,"b")";
  EXPECT_NE(Refusal(kText, fmt::format(R"({{"prompt":"a","guided_choice":[{}]}})", choices))
                .find("1 to 1024 strings"),
            std::string::npos);
}

}  // namespace
}  // namespace latte::bad_request_test
