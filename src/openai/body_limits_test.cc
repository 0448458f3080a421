// The limits of the fields of requests that docs/limits.md lists.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/openai/error.h"
#include "src/openai/request.h"

namespace latte::body_limits_test {
namespace {

constexpr auto kChat = OpenAiEndpoint::kChat;
constexpr auto kText = OpenAiEndpoint::kCompletions;
constexpr std::string_view kHi = R"("messages":[{"role":"user","content":"Hi"}],"max_tokens":9)";

// The message of the refusal; empty: the request is taken.
std::string Refusal(OpenAiEndpoint endpoint, const std::string& body,
                    const OpenAiRules& rules = {}) {
  static const OpenAiModel tiny =
      OpenAiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  const auto parsed = ParseOpenAiBody(endpoint, body, tiny, rules);
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
  for (const auto endpoint :
       {kChat, kText, OpenAiEndpoint::kResponses, OpenAiEndpoint::kMessages}) {
    EXPECT_NE(Refusal(endpoint, fmt::format(R"({{{},"metadata":[{}]}})", kHi, values))
                  .find("more than 2000000 elements"),
              std::string::npos);
    EXPECT_NE(Refusal(endpoint, fmt::format(R"({{{},"metadata":{}}})", kHi, deep))
                  .find("deeper than 64 levels"),
              std::string::npos);
  }
}

TEST(BodyLimits, AServerMayAllowLess) {
  const OpenAiRules rules{.max_n = 2, .max_prompts = 2, .max_logprobs = 3};
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
}  // namespace latte::body_limits_test
