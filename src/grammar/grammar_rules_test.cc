// Bounds of grammars, and what a schema may not contain; without xgrammar.
#include "src/grammar/grammar_rules.h"

#include <gtest/gtest.h>

namespace latte::grammar_rules_test {
namespace {

TEST(GrammarRulesTest, NamesAreReadBack) {
  for (const GrammarSyntax syntax :
       {GrammarSyntax::kJsonSchema, GrammarSyntax::kRegex, GrammarSyntax::kEbnf,
        GrammarSyntax::kLark, GrammarSyntax::kStructuralTag})
    EXPECT_EQ(FindGrammarSyntax(Name(syntax)), syntax);
  EXPECT_EQ(FindGrammarSyntax("json"), std::nullopt);
}

TEST(GrammarRulesTest, SizeAndDepthAreBounded) {
  const auto check = [](const std::string& text) {
    return CheckGrammarSize({GrammarSyntax::kRegex, text});
  };
  EXPECT_TRUE(check(std::string(256 << 10, 'a')));
  EXPECT_FALSE(check(std::string((256 << 10) + 1, 'a')));
  EXPECT_TRUE(check(std::string(200, '(') + std::string(200, ')')));
  EXPECT_FALSE(check(std::string(201, '(') + std::string(201, ')')));
  EXPECT_TRUE(CheckGrammarSize({GrammarSyntax::kStructuralTag, std::string(4 << 20, 'a')}));
  EXPECT_FALSE(CheckGrammarSize({GrammarSyntax::kStructuralTag, std::string((4 << 20) + 1, 'a')}));
  EXPECT_FALSE(check(std::string("a\0b", 3)));
  std::string flat;
  for (int i = 0; i < 1000; ++i) flat += "(a)[b]{1}";
  EXPECT_TRUE(check(flat));
}

TEST(GrammarRulesTest, SchemasThatSayMoreThanIsRead) {
  EXPECT_TRUE(
      CheckSchemaKeywords(R"({"$ref": "#/$defs/a", "description": "d", "$defs": {"a": {}}})"));
  EXPECT_TRUE(
      CheckSchemaKeywords(R"({"anyOf": [{"type": "null"}, {"minimum": 3}], "default": null})"));
  EXPECT_TRUE(CheckSchemaKeywords(R"({"type": "array", "uniqueItems": false})"));
  EXPECT_TRUE(CheckSchemaKeywords("true"));
  for (const char* schema :
       {R"({"$ref": "#/$defs/a", "minimum": 3})", R"({"anyOf": [{}], "properties": {}})",
        R"({"items": {"enum": [1, 2], "pattern": "a"}})",
        R"({"properties": {"a": {"properties": {"b": {"allOf": [{}], "required": ["c"]}}}}})",
        R"({"not": {"type": "string"}})", R"({"if": {}, "then": {}})",
        R"({"properties": {"a": {"type": "array", "uniqueItems": true}}})",
        R"({"$defs": {"a": {"oneOf": [{"const": 1, "maxLength": 2}]}}})"}) {
    const Status status = CheckSchemaKeywords(schema);
    ASSERT_FALSE(status) << schema;
    EXPECT_EQ(status.error().code, Code::kUnsupported) << schema;
  }
  for (const char* text : {"", "{", "[]", "3", R"({"a": 1, "a": 2})", R"({"uniqueItems": 3})"}) {
    const Status status = CheckSchemaKeywords(text);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace latte::grammar_rules_test
