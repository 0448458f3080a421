#include "src/chat/tools/call_arguments.h"

#include <gtest/gtest.h>

#include "src/base/json.h"
#include "tests/support/property.h"

namespace latte::call_arguments_test {
namespace {

using Says = ParameterValue::Says;

ValueSchema SchemaOf(const std::string& text) {
  const Json json = Json::Parse(text, "schema").value();
  return ValuesOf(json, json);
}

std::string ReadValue(const ValueSchema& schema, Says says, std::string_view text, size_t step) {
  ParameterValue value(schema, says);
  std::string out;
  for (size_t at = 0; at < text.size(); at += step) value.Push(text.substr(at, step), &out);
  value.Finish(&out);
  return out;
}

std::string ReadArguments(std::string_view text, size_t step) {
  JsonArguments arguments;
  std::string out;
  for (size_t at = 0; at < text.size(); at += step) arguments.Push(text.substr(at, step), &out);
  arguments.Finish(&out);
  return out;
}

const std::string kSchemas[] = {R"({"type": "string"})",
                                R"({"type": ["string", "null"]})",
                                R"({"type": "integer"})",
                                R"({"type": ["array", "object"]})",
                                R"({"enum": ["1", 2, null]})",
                                R"({"type": ["string", "boolean", "array"]})",
                                "{}"};

// The transcripts of tests/data/tools have the values.
TEST(ParameterValue, AnyTextBecomesJsonAndTheSameHoweverItIsCut) {
  testing_support::CheckProperty(
      3'000, 40, [](const std::vector<uint8_t>& what, uint8_t schema, uint8_t says, size_t step) {
        constexpr std::string_view kParts[] = {"{",    "}",   "[", "]",    "\"",   "1", "2.5",
                                               "true", "nu",  "l", "None", "True", "é", " ",
                                               "\n",   "NaN", ",", ":",    "word", "-", "\\ud83d"};
        std::string text;
        for (const uint8_t part : what) text += kParts[part % std::size(kParts)];
        const ValueSchema of = SchemaOf(kSchemas[schema % std::size(kSchemas)]);
        const auto hint = static_cast<Says>(says % 3);
        const std::string whole = ReadValue(of, hint, text, text.size() + 1);
        RC_LOG() << text << "\n" << whole << "\n";
        RC_ASSERT(Json::Parse(whole, "value").has_value());
        RC_ASSERT(ReadValue(of, hint, text, 1 + step % 5) == whole);
      });
}

TEST(ParameterValue, LongValuesReadTheSameHoweverTheyAreCut) {
  for (const size_t length :
       {size_t{100}, size_t{65'535}, size_t{65'536}, size_t{65'537}, size_t{70'000}})
    for (const std::string& text :
         {std::string(length, '1'), std::string(length, ' ') + "{}",
          "\"" + std::string(length, 'x') + "\"", "[" + std::string(length, ' ')})
      for (const std::string& schema : kSchemas)
        EXPECT_EQ(ReadValue(SchemaOf(schema), Says::kNothing, text, 1),
                  ReadValue(SchemaOf(schema), Says::kNothing, text, text.size()))
            << schema << " " << length;
}

// A client sees long texts while they are generated, also optional ones.
TEST(ParameterValue, TextsComeAtOnce) {
  for (const char* schema :
       {R"({"type": "string"})", R"({"anyOf": [{"type": "string"}, {"type": "null"}]})", "{}"}) {
    ParameterValue value(SchemaOf(schema), Says::kNothing);
    std::string out;
    value.Push("import os\n", &out);
    EXPECT_EQ(out, "\"import os\\n") << schema;
  }
  ParameterValue list(SchemaOf(R"({"type": "array"})"), Says::kNothing);
  std::string out;
  list.Push("[1, \"a", &out);
  EXPECT_EQ(out, "[1, \"a");
}

TEST(JsonArguments, AnyTextBecomesAnObject) {
  testing_support::CheckProperty(3'000, 40, [](const std::vector<uint8_t>& what, size_t step) {
    constexpr std::string_view kParts[] = {
        "{",      "}",    "[", "]",  "\"", "\\\"", "1", "```",
        "json\n", "null", " ", "\n", ",",  ":",    "a", "\"{\\\"a\\\": 1}\"",
        "'"};
    std::string text;
    for (const uint8_t part : what) text += kParts[part % std::size(kParts)];
    const std::string whole = ReadArguments(text, text.size() + 1);
    RC_LOG() << text << "\n" << whole << "\n";
    const auto json = Json::Parse(whole, "arguments");
    RC_ASSERT(json.has_value());
    RC_ASSERT(json->is_object());
    RC_ASSERT(ReadArguments(text, 1 + step % 5) == whole);
  });
}

TEST(JsonArguments, WhatIsCutIsNoJson) {
  for (const char* text : {"", "  ", "{", "{\"a\": 1", "[1]", "\"{}\"", "null", "```json\n{}"}) {
    JsonArguments arguments;
    std::string out;
    arguments.Push(text, &out);
    arguments.Cut(&out);
    EXPECT_FALSE(Json::Parse(out, "arguments")) << text << ": " << out;
    EXPECT_NE(out.find_first_not_of(' '), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace latte::call_arguments_test
