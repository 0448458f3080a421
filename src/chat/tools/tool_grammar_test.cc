// Calls as grammars: what a model must write is what the readers of calls understand.
#include "src/chat/tools/tool_grammar.h"

#include <gtest/gtest.h>

#include "src/base/json.h"
#include "src/base/json_out.h"
#include "src/base/random.h"
#include "src/chat/tools/tool_call_parser.h"
#include "src/grammar/grammar.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::tool_grammar_test {
namespace {

constexpr ToolFormat kFormats[] = {ToolFormat::kDeepseekV3, ToolFormat::kDeepseekV31,
                                   ToolFormat::kDeepseekV32, ToolFormat::kKimiK2, ToolFormat::kGlm};
constexpr const char* kWeather =
    R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer",
        "minimum": 1, "maximum": 9}, "unit": {"type": "string", "enum": ["C", "F"]}},
        "required": ["city", "unit"]})";

// A tokenizer with all bytes and the marks of every format; `with_marks`: as added tokens.
Tokenizer Bytes(bool with_marks) {
  JsonOut file = SmallTokenizer();
  if (with_marks)
    for (const char* mark :
         {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
          "<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "｜DSML｜", "<|tool_calls_section_begin|>",
          "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>",
          "<|tool_call_argument_begin|>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>",
          "<arg_value>", "</arg_value>"})
      AddToken(&file, mark, {{"special", false}});
  return Tokenizer::FromJson(Dump(file)).value();
}

class ToolGrammarTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<GrammarMatcher> Start(JsonOut format) {
    const JsonOut tag = {{"type", "structural_tag"}, {"format", std::move(format)}};
    auto compiled = compiler_->Compile({GrammarSyntax::kStructuralTag, Dump(tag)});
    EXPECT_TRUE(compiled) << compiled.error().message << Dump(tag);
    return GrammarMatcher::Create(*compiled, std::vector<int32_t>{}).value();
  }

  bool Matches(const JsonOut& format, std::string_view text) {
    const TextPiece piece{std::string(text), true};
    const auto matcher = Start(format);
    const auto ids = tokenizer_.EncodePieces({&piece, 1}).value();
    for (const int32_t id : ids)
      if (!matcher->Accept(id)) return false;
    return matcher->completed();
  }

  // A random text that matches, which ends as soon as it may after `patience` tokens.
  std::string RandomText(const JsonOut& format, uint64_t seed, int patience, bool is_json) {
    const auto matcher = Start(format);
    std::string out;
    StreamDecoder decoder(tokenizer_);  // as the engine does: random bytes are no UTF-8
    std::vector<uint32_t> mask(MaskWords(tokenizer_.vocab_size()));
    for (int i = 0; i < 3000; ++i) {
      matcher->FillMask(mask);
      std::vector<int32_t> allowed;
      for (int32_t t = 0; t < tokenizer_.vocab_size(); ++t)
        if (InMask(mask, t)) allowed.push_back(t);
      if (allowed.empty() || (i >= patience && matcher->completed())) break;
      const auto pick = Mix64(seed * 7919 + static_cast<uint64_t>(i)) % allowed.size();
      const int32_t token = i < patience ? allowed[pick] : Closing(allowed, out, is_json);
      EXPECT_TRUE(matcher->Accept(token)) << token << " after " << out;
      out += decoder.Push(token);
    }
    EXPECT_TRUE(matcher->completed()) << out;
    return out;
  }
  // What leads to the end: marks, the beginning of a mark, the ends of JSON's strings and brackets.
  int32_t Closing(const std::vector<int32_t>& allowed, std::string_view text, bool is_json) const {
    const auto may = [&](int32_t token) {
      return std::ranges::find(allowed, token) != allowed.end();
    };
    const auto mark = std::ranges::find_if(allowed, [](int32_t token) { return token >= 256; });
    if (mark != allowed.end()) return *mark;
    if (text.ends_with('<') && may('/')) return '/';
    if (text.ends_with("<|tool_call") && may('s')) return 's';  // of Kimi's end of all calls
    for (const char c : is_json ? std::string_view("\"}]<") : std::string_view("<\"}]"))
      if (may(c)) return c;
    return allowed.front();
  }

  Tokenizer tokenizer_ = Bytes(GetParam());
  std::unique_ptr<GrammarCompiler> compiler_ =
      GrammarCompiler::Create(tokenizer_, tokenizer_.vocab_size()).value();
};

TEST_P(ToolGrammarTest, RandomCallsAreReadWithArgumentsOfTheSchema) {
  const ToolFunction weather{"get_weather", kWeather, true};
  const ToolFunction time{"get_time", R"({"type": "object", "properties": {}})", false};
  auto known = std::make_shared<KnownFunctions>();
  (*known)["get_weather"] = ParametersOf(Json::Parse(kWeather, "weather").value());
  for (const ToolFormat format : kFormats) {
    const bool is_json = SyntaxOf(format).parameter_begin.empty();
    if (!is_json && !GetParam()) continue;  // a random text hardly ever spells the end of a value
    const JsonOut calls =
        CallsFormat(format, std::vector{weather, time}, /*parallel=*/true, tokenizer_).value();
    for (uint64_t seed = 0; seed < 12; ++seed) {
      const std::string text = RandomText(calls, seed, 60, is_json);
      ToolCallParser parser(format, known);
      std::vector<ToolEvent> events = parser.Add(text);
      for (ToolEvent& event : parser.Finish(false)) events.push_back(std::move(event));
      std::vector<std::pair<std::string, std::string>> read;
      for (const ToolEvent& event : events) {
        ASSERT_NE(event.kind, ToolEvent::Kind::kContent) << Name(format) << "\n" << text;
        if (event.kind == ToolEvent::Kind::kCallBegin) read.emplace_back(event.text, "");
        if (event.kind == ToolEvent::Kind::kArguments) read.back().second += event.text;
      }
      ASSERT_FALSE(read.empty()) << text;
      for (const auto& [name, arguments] : read) {
        const auto json = Json::Parse(arguments, "arguments");
        ASSERT_TRUE(json) << Name(format) << "\n" << text << "\n" << arguments;
        if (name == "get_time") continue;
        ASSERT_EQ(name, "get_weather");
        EXPECT_TRUE(json->GetString("city")) << arguments;
        const std::string unit = json->GetString("unit").value_or("none");
        EXPECT_TRUE(unit == "C" || unit == "F") << arguments;
        EXPECT_LE(json->GetIntOr("days", 1).value_or(99), 9) << arguments;
      }
    }
  }
}

TEST_P(ToolGrammarTest, WhatTheModelsWrite) {
  const std::vector<ToolFunction> one = {{"f", R"({"type": "object", "properties":
      {"a": {"type": "string"}, "n": {"type": "integer"}}, "required": ["a"]})"}};
  const auto calls = [&](ToolFormat format, bool parallel = true) {
    return CallsFormat(format, one, parallel, tokenizer_).value();
  };
  const std::string v3 =
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": "
      "\"x\"}\n```"
      "<｜tool▁call▁end｜>";
  EXPECT_TRUE(Matches(calls(ToolFormat::kDeepseekV3), v3 + "<｜tool▁calls▁end｜>"));
  const std::string second =
      "\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": "
      "\"\"}\n```<｜tool▁call▁end｜>";
  EXPECT_TRUE(Matches(calls(ToolFormat::kDeepseekV3), v3 + second + "<｜tool▁calls▁end｜>"));
  EXPECT_FALSE(
      Matches(calls(ToolFormat::kDeepseekV3, false), v3 + second + "<｜tool▁calls▁end｜>"));
  EXPECT_FALSE(Matches(calls(ToolFormat::kDeepseekV3), "Sure. " + v3 + "<｜tool▁calls▁end｜>"));
  EXPECT_TRUE(
      Matches(calls(ToolFormat::kDeepseekV31),
              "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"x\", \"n\": 3}"
              "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"));
  EXPECT_FALSE(Matches(calls(ToolFormat::kDeepseekV31),
                       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"n\": 3}"
                       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"));
  EXPECT_TRUE(
      Matches(calls(ToolFormat::kDeepseekV32),
              "\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter "
              "name=\"a\" string=\"true\">a \"b\" < c\n</｜DSML｜parameter>\n<｜DSML｜parameter "
              "name=\"n\" string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
              "</｜DSML｜function_calls>"));
  EXPECT_TRUE(Matches(calls(ToolFormat::kKimiK2),
                      "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
                      "<|tool_call_argument_begin|>{\"a\":\"<\"}<|tool_call_end|>"
                      "<|tool_calls_section_end|>"));
  EXPECT_TRUE(
      Matches(calls(ToolFormat::kGlm),
              "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x y</arg_value>\n</tool_call>"));
  EXPECT_TRUE(
      Matches(calls(ToolFormat::kGlm),
              "\n<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value><arg_key>n</arg_key>"
              "<arg_value>-2</arg_value></tool_call>\n<tool_call>f<arg_key>a</arg_key>"
              "<arg_value></arg_value></tool_call>"));
  EXPECT_FALSE(Matches(calls(ToolFormat::kGlm), "<tool_call>f</tool_call>"));
  EXPECT_FALSE(Matches(calls(ToolFormat::kGlm), "<tool_call>g</tool_call>"));
}

TEST_P(ToolGrammarTest, TextWithoutCallsBeginsNoCall) {
  for (const ToolFormat format : kFormats) {
    const JsonOut text = TextWithoutCalls(format, tokenizer_);
    EXPECT_TRUE(Matches(text, "Hello <b>you</b>, 1 < 2"));
    const std::string call(SyntaxOf(format).call_begin);
    for (const std::string_view mark : CallOpenings(format))
      EXPECT_FALSE(Matches(text, "Hello " + std::string(mark) + call)) << Name(format) << mark;
  }
}

TEST_P(ToolGrammarTest, AStrictSchemaMustBeEnforceable) {
  const std::string schema = R"({"type": "object", "properties": {"a": {"not": {}}}})";
  for (const ToolFormat format : kFormats) {
    EXPECT_TRUE(
        CallsFormat(format, std::vector<ToolFunction>{{"f", schema, false}}, true, tokenizer_));
    const auto strict =
        CallsFormat(format, std::vector<ToolFunction>{{"f", schema, true}}, true, tokenizer_);
    ASSERT_FALSE(strict) << Name(format);
    EXPECT_EQ(strict.error().code, Code::kUnsupported);
  }
}

// These formats write texts without quotes: constraints on them are refused if strict, else the
// text is free.
TEST_P(ToolGrammarTest, ConstraintsOnTextsWithoutQuotes) {
  constexpr const char* kRefused[] = {
      R"({"type": "object", "properties": {"a": {"type": "string", "pattern": "^[A-Z]{3}$"}}})",
      R"({"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}})",
      R"({"type": "object", "properties": {"a": {"type": "string", "minLength": 9}}})",
      R"({"type": "object", "properties": {"a": {"type": "string", "not": {"const": "x"}}}})",
      R"({"type": "object", "properties": {}, "not": {}})",
      R"({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]})",
      R"({"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1})"};
  for (const ToolFormat format : {ToolFormat::kGlm, ToolFormat::kDeepseekV32})
    for (const std::string schema : kRefused) {
      const auto strict =
          CallsFormat(format, std::vector<ToolFunction>{{"f", schema, true}}, true, tokenizer_);
      ASSERT_FALSE(strict) << Name(format) << schema;
      EXPECT_EQ(strict.error().code, Code::kUnsupported) << strict.error().message;
      EXPECT_TRUE(
          CallsFormat(format, std::vector<ToolFunction>{{"f", schema, false}}, true, tokenizer_));
    }
  const std::vector<ToolFunction> free = {{"f", kRefused[0], false}};
  EXPECT_TRUE(Matches(CallsFormat(ToolFormat::kGlm, free, true, tokenizer_).value(),
                      "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>Paris</arg_value>\n"
                      "</tool_call>"));
  const std::vector<ToolFunction> fixed = {
      {"f", R"({"type": "object", "properties": {"a": {"type": "string", "const": "x"}},
                "required": ["a"], "additionalProperties": false})",
       true}};
  const JsonOut calls = CallsFormat(ToolFormat::kGlm, fixed, true, tokenizer_).value();
  const auto call = [](const std::string& value) {
    return "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>" + value + "</arg_value>\n</tool_call>";
  };
  EXPECT_TRUE(Matches(calls, call("x")));
  EXPECT_FALSE(Matches(calls, call("y")));
}

// Arguments hold to their schema as answers do.
TEST_P(ToolGrammarTest, ArgumentsMatchTheirSchemas) {
  const std::vector<ToolFunction> functions = {
      {"f",
       R"({"type": "object", "properties": {"q": {"type": "string", "pattern": "^\"[a-c]+\\n$"},
                "r": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "s": {"$ref": "#/properties/r/anyOf/1"}}, "required": ["q", "s", "t"]})",
       true}};
  const JsonOut v31 = CallsFormat(ToolFormat::kDeepseekV31, functions, true, tokenizer_).value();
  const auto call = [](const std::string& arguments) {
    return "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>" + arguments +
           "<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
  };
  EXPECT_TRUE(Matches(v31, call(R"({"q": "\"ab\n", "s": null, "t": 1})")));
  EXPECT_FALSE(Matches(v31, call(R"({"q": ""ab\n", "s": null, "t": 1})")));
  EXPECT_FALSE(Matches(v31, call("{\"q\": \"\\\"ab\n\", \"s\": null, \"t\": 1}")));
  EXPECT_FALSE(Matches(v31, call(R"({"q": "\"ab\n", "s": 3, "t": 1})")));
  EXPECT_FALSE(Matches(v31, call(R"({"q": "\"ab\n", "s": null})")));
}

TEST_P(ToolGrammarTest, ReferencesOfParametersLeadToTheWholeSchema) {
  const std::vector<ToolFunction> functions = {
      {"f",
       R"({"type": "object", "properties": {"a/b": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
                "c": {"$ref": "#/properties/a~1b/anyOf/1"}}, "required": ["c"]})",
       true}};
  const JsonOut glm = CallsFormat(ToolFormat::kGlm, functions, true, tokenizer_).value();
  const auto call = [](const std::string& value) {
    return "<tool_call>f\n<arg_key>c</arg_key>\n<arg_value>" + value + "</arg_value>\n</tool_call>";
  };
  EXPECT_TRUE(Matches(glm, call("true")));
  EXPECT_FALSE(Matches(glm, call("1")));
  const JsonOut v32 = CallsFormat(ToolFormat::kDeepseekV32, functions, true, tokenizer_).value();
  const auto invoke = [](const std::string& value) {
    return "\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter "
           "name=\"c\" "
           "string=\"false\">" +
           value + "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>";
  };
  EXPECT_TRUE(Matches(v32, invoke("false")));
  EXPECT_FALSE(Matches(v32, invoke("\"x\"")));
}

TEST_P(ToolGrammarTest, TextUpToAMark) {
  const JsonOut until = TextUntil("</think>", tokenizer_);
  EXPECT_TRUE(Matches(until, "I < you </b> think</think>"));
  EXPECT_TRUE(Matches(until, "</think>"));
  EXPECT_FALSE(Matches(until, "think"));
  EXPECT_FALSE(Matches(Sequence({until, FormatText("a", tokenizer_)}), "x</think>b"));
}

INSTANTIATE_TEST_SUITE_P(Marks, ToolGrammarTest, testing::Values(true, false),
                         [](const auto& i) { return i.param ? "AreTokens" : "AreText"; });

}  // namespace
}  // namespace latte::tool_grammar_test
