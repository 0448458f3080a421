// Formats of answers in requests, and the grammars that follow.
#include "src/api/common/format/answer_format.h"

#include <gtest/gtest.h>

#include "src/api/request.h"
#include "src/base/json_out.h"
#include "src/checkpoint/model_files.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::answer_format_test {
namespace {

constexpr std::string_view kHi = R"({"messages":[{"role":"user","content":"Hi"}],)";
constexpr std::string_view kTools =
    R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",
       "properties":{"a":{"type":"integer"}},"required":["a"]}}},
       {"type":"function","function":{"name":"g"}}])";
constexpr const char* kCalls =
    "{{ tools }}{{ messages[-1].content }}{# <|tool_calls_section_begin|> #}";

// A tokenizer of bytes, with a template.
ApiModel Model(const std::string& source) {
  JsonOut file = SmallTokenizer();
  for (const char* mark :
       {"<think>", "</think>", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>",
        "<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>"})
    AddToken(&file, mark, {{"special", false}});
  ApiModel model = ApiModel::Create("tiny", ModelFiles::Load("tiny").value()).value();
  model.tokenizer =
      Tokenizer::FromJson(Dump(file), Dump(JsonOut{{"chat_template", source}})).value();
  model.chat = ChatPromptBuilder::Create(model.tokenizer, ModelConfig());
  return model;
}

class AnswerFormatTest : public testing::Test {
 protected:
  Result<ApiRequest> Parse(const std::string& members) {
    return ParseApiBody(ApiEndpoint::kChat, std::string(kHi) + members + "}", model_);
  }

  // Whether the request's grammar takes the whole text.
  bool Takes(const std::string& members, std::string_view text) {
    const auto parsed = Parse(members);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
    if (!parsed) return false;
    const Request& request = parsed->requests.front();
    const auto compiler =
        GrammarCompiler::Create(model_.tokenizer, model_.tokenizer.vocab_size()).value();
    const auto grammar =
        compiler->Compile({*FindGrammarSyntax(request.grammar_syntax), request.grammar});
    EXPECT_TRUE(grammar) << (grammar ? "" : grammar.error().message) << request.grammar;
    if (!grammar) return false;
    const auto matcher = GrammarMatcher::Create(*grammar, std::vector<int32_t>{}).value();
    const TextPiece piece{std::string(text), true};
    const auto ids = model_.tokenizer.EncodePieces({&piece, 1}).value();
    return std::ranges::all_of(ids, [&](int32_t id) { return matcher->Accept(id); }) &&
           matcher->completed();
  }

  std::string Message(const std::string& members) {
    const auto parsed = Parse(members);
    return parsed ? "taken" : parsed.error().message;
  }

  ApiModel model_ = Model("{{ messages[-1].content }}");
};

TEST_F(AnswerFormatTest, EveryFieldConstrains) {
  const char* const kSchema =
      R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})";
  const std::string schema(kSchema);
  for (
      const std::string& field :
      {R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":)" +
           schema + "}}",
       R"("guided_json":)" + schema, R"("structured_outputs":{"json":)" + schema + "}"}) {
    EXPECT_TRUE(Takes(field, R"({"a": 3})")) << field;
    EXPECT_FALSE(Takes(field, R"({"b": 3})")) << field;
  }
  for (const std::string field : {R"("response_format":{"type":"json_object"})",
                                  R"("structured_outputs":{"json_object":true})"}) {
    EXPECT_TRUE(Takes(field, R"({"b": [3, null]})")) << field;
    EXPECT_FALSE(Takes(field, "[3]")) << field;
  }
  EXPECT_TRUE(Takes(R"("guided_regex":"a+b")", "aab"));
  EXPECT_FALSE(Takes(R"("guided_regex":"a+b")", "aa"));
  EXPECT_TRUE(Takes(R"("guided_choice":["x\"y","z"])", "x\"y"));
  EXPECT_FALSE(Takes(R"("guided_choice":["x\"y","z"])", "x"));
  EXPECT_TRUE(Takes(R"("guided_grammar":"root ::= \"a\" | \"b\"")", "b"));
  EXPECT_TRUE(Takes(R"("guided_grammar":"start: \"a\" | \"b\"")", "b"));
  EXPECT_EQ(Parse(R"("response_format":{"type":"text"})")->requests.front().grammar, "");
}

TEST_F(AnswerFormatTest, ErrorsNameTheField) {
  EXPECT_EQ(Message(R"("guided_json":{"type":"banana"})").find("body: 'guided_json': "), 0U)
      << Message(R"("guided_json":{"type":"banana"})");
  const std::string unknown =
      Message(R"("response_format":{"type":"json_schema","json_schema":{"schema":{"not":{}}}})");
  EXPECT_NE(unknown.find("response_format.json_schema.schema"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("cannot be enforced"), std::string::npos) << unknown;
  EXPECT_NE(Message(R"("guided_regex":"a","guided_json":{})").find("already has a format"),
            std::string::npos);
}

TEST_F(AnswerFormatTest, SchemasAreEnforcedOrRefusedByName) {
  EXPECT_TRUE(Takes(R"("guided_json":{"pattern":"^\"a$"})", R"("\"a")"));
  EXPECT_FALSE(Takes(R"("guided_json":{"pattern":"^\"a$"})", R"(""a")"));
  EXPECT_FALSE(Takes(R"("guided_json":{"type":"object","required":["b"]})", "{}"));
  EXPECT_TRUE(Takes(R"("guided_json":{"type":"string","maxLength":2})", R"("\n\"")"));
  const std::string empty =
      Message(R"("guided_json":{"type":"object","properties":{"a":{"anyOf":[]}}})");
  EXPECT_EQ(empty.find("body: 'guided_json': 'properties.a': 'anyOf': expected"), 0U) << empty;
  const std::string nothing = Message(R"("guided_json":{"minimum":3,"maximum":2})");
  EXPECT_NE(nothing.find("'minimum'"), std::string::npos) << nothing;
}

TEST_F(AnswerFormatTest, ReasoningIsFree) {
  const std::string json = R"("response_format":{"type":"json_object"})";
  // The model may begin with it.
  EXPECT_TRUE(Takes(json, "<think>A { b.</think>{}"));
  EXPECT_TRUE(Takes(json, "{}"));
  EXPECT_FALSE(Takes(json, "<think>A { b.{}"));
  // The prompt begins it.
  model_ = Model("{{ messages[-1].content }}<think>");
  EXPECT_TRUE(Takes(json, "A { b.</think>\n\n{}"));
  EXPECT_FALSE(Takes(json, "{}"));
}

TEST_F(AnswerFormatTest, CallsThatMustBeMade) {
  model_ = Model(kCalls);
  const auto call = [](const std::string& name, const std::string& arguments) {
    return "<|tool_calls_section_begin|><|tool_call_begin|>functions." + name +
           ":0<|tool_call_argument_begin|>" + arguments +
           "<|tool_call_end|><|tool_calls_section_end|>";
  };
  const std::string required = std::string(kTools) + R"(,"tool_choice":"required")";
  EXPECT_TRUE(Takes(required, call("f", R"({"a": 1})")));
  EXPECT_TRUE(Takes(required, call("g", R"({"any": {}})")));
  EXPECT_TRUE(Takes(required, "<think>So.</think>" + call("g", "{}")));
  EXPECT_FALSE(Takes(required, call("f", R"({"a": "1"})")));
  EXPECT_FALSE(Takes(required, call("h", "{}")));
  EXPECT_FALSE(Takes(required, "Hello"));
  const std::string named =
      std::string(kTools) + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})";
  EXPECT_TRUE(Takes(named, call("g", "{}")));
  EXPECT_FALSE(Takes(named, call("f", R"({"a": 1})")));
  // Nothing is strict: the model is free.
  EXPECT_EQ(Parse(std::string(kTools))->requests.front().grammar, "");
}

TEST_F(AnswerFormatTest, StrictFunctionsAndFormatsBesideTools) {
  model_ = Model(kCalls);
  const auto call = [](const std::string& arguments) {
    return "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|"
           ">" +
           arguments + "<|tool_call_end|><|tool_calls_section_end|>";
  };
  const std::string strict =
      R"("tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{
         "type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}])";
  EXPECT_TRUE(Takes(strict, "Hello"));
  EXPECT_TRUE(Takes(strict, "Hello" + call(R"({"a": 1})")));
  EXPECT_FALSE(Takes(strict, "Hello" + call(R"({"a": true})")));
  const std::string both = std::string(kTools) + R"(,"response_format":{"type":"json_object"})";
  EXPECT_TRUE(Takes(both, "{}"));
  EXPECT_TRUE(Takes(both, call(R"({"a": 1})")));
  EXPECT_FALSE(Takes(both, "Hello"));
}

// Agents offer many functions with large schemas.
TEST_F(AnswerFormatTest, ManyStrictFunctions) {
  model_ = Model(kCalls);
  std::string tools = R"("tools":[)";
  for (int i = 0; i < 200; ++i)
    tools += (i > 0 ? "," : "") + std::string(R"({"type":"function","function":{"name":"f)") +
             std::to_string(i) +
             R"(","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"array",
                "items":{"type":"string"}},"b":{"enum":["x","y"]},"c":{"type":"number"}}}}})";
  EXPECT_TRUE(Takes(tools + "]",
                    "<|tool_calls_section_begin|><|tool_call_begin|>functions.f177:0"
                    "<|tool_call_argument_begin|>{\"b\": \"y\"}<|tool_call_end|>"
                    "<|tool_calls_section_end|>"));
}

}  // namespace
}  // namespace latte::answer_format_test
