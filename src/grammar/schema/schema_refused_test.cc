// Schemas that are refused, and the names that the refusals give; without xgrammar.
#include <gtest/gtest.h>

#include "src/grammar/schema/schema_rules.h"

namespace latte::schema_refused_test {
namespace {

struct RefusedSchema {
  std::string schema;
  std::string named;  // a part of the message
  Code code = Code::kUnsupported;
};

void CheckRefused(const std::vector<RefusedSchema>& cases) {
  for (const RefusedSchema& one : cases) {
    const auto rules = SchemaRules(one.schema, "");
    ASSERT_FALSE(rules) << one.schema << "\n" << *rules;
    EXPECT_EQ(rules.error().code, one.code) << one.schema << "\n" << rules.error().message;
    EXPECT_NE(rules.error().message.find(one.named), std::string::npos) << one.schema << "\n"
                                                                        << rules.error().message;
    EXPECT_EQ(rules.error().message.find("grammar: "), 0U) << rules.error().message;
  }
}

TEST(SchemaRefusedTest, WhatCannotBeEnforced) {
  CheckRefused(
      {{R"({"not": {"type": "string"}})", "'not'"},
       {R"({"properties": {"a": {"items": {"if": {}, "then": {}}}}})",
        "'properties.a.items': 'if'"},
       {R"({"type": "array", "uniqueItems": true})", "'uniqueItems'"},
       {R"({"type": "array", "contains": {}})", "'contains'"},
       {R"({"dependencies": {"a": ["b"]}})", "'dependencies'"},
       {R"({"type": "number", "multipleOf": 0.5})", "'multipleOf'"},
       {R"({"type": "integer", "multipleOf": 1001})", "'multipleOf'"},
       {R"({"type": "string", "format": "regex"})", "'format'"},
       {R"({"type": "string", "format": "int32"})", "'format'"},
       {R"({"type": "string", "pattern": "^(?!a)b$"})", "'pattern': character 4: a lookahead"},
       {R"({"patternProperties": {"\\bx": {}}})", "'patternProperties'"},
       {R"({"pattern": ".*a.{60}", "format": "email"})", "'format'"},
       {R"({"additionalProperties": {"type": "null"}, "minProperties": 2})", "'minProperties'"},
       {R"({"enum": [[1]], "items": {"type": "string"}})", "'enum'"},
       {R"({"minimum": 1e40})", "'minimum'"},
       {R"({"minLength": 1000000})", "'minLength'"}});
}

TEST(SchemaRefusedTest, ChoicesOfOneOfThatMayMeet) {
  CheckRefused(
      {{R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})", "'oneOf'"},
       {R"({"oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]})", "'oneOf'"},
       {R"({"properties": {"x": {"oneOf": [{"const": 1}, {"enum": [2, 1]}]}}})",
        "'properties.x': 'oneOf'"},
       {R"({"oneOf": [{"type": "string", "minLength": 2}, {"type": "string", "maxLength": 3}]})",
        "'oneOf'"}});
}

TEST(SchemaRefusedTest, References) {
  CheckRefused(
      {{R"({"$ref": "#/$defs/none"})", "'#/$defs/none' leads to no schema", Code::kInvalidArgument},
       {R"({"$defs": {"a": [true]}, "$ref": "#/$defs/a/01"})", "leads to no schema",
        Code::kInvalidArgument},
       {R"({"$defs": {"a": 3}, "$ref": "#/$defs/a"})", "leads to no schema",
        Code::kInvalidArgument},
       {R"({"$ref": "https://example.org/schema"})", "https://example.org/schema"},
       {R"({"$ref": "#"})", "leads back to itself"},
       {R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})", "leads back to itself"},
       {R"({"minimum": 3, "$ref": "#"})", "'$ref'"},
       {R"({"$defs": {"a": {"$id": "b", "items": {"$ref": "#/x"}}}})", "'$id'"},
       {R"({"$ref": 3})", "'$ref'", Code::kInvalidArgument},
       {R"({"$dynamicRef": "#a"})", "'$dynamicRef'"}});
}

TEST(SchemaRefusedTest, SchemasThatNothingMatches) {
  CheckRefused(
      {{R"({"anyOf": []})", "'anyOf'", Code::kInvalidArgument},
       {R"({"properties": {"a": {"anyOf": []}}})", "'properties.a': 'anyOf'",
        Code::kInvalidArgument},
       {R"({"type": "object", "allOf": []})", "'allOf'", Code::kInvalidArgument},
       {R"({"oneOf": {}})", "'oneOf'", Code::kInvalidArgument},
       {R"({"enum": []})", "'enum'", Code::kInvalidArgument},
       {"false", "no value matches", Code::kInvalidArgument},
       {R"({"type": "integer", "minimum": 3, "maximum": 2})", "no value matches",
        Code::kInvalidArgument},
       {R"({"type": "string", "const": 3})", "no value matches", Code::kInvalidArgument},
       {R"({"properties": {"a": false}, "required": ["a"]})", "no value matches",
        Code::kInvalidArgument},
       {R"({"required": ["a"], "additionalProperties": false})", "no value matches",
        Code::kInvalidArgument},
       {R"({"allOf": [{"type": "string"}, {"type": "null"}]})", "no value matches",
        Code::kInvalidArgument},
       {R"({"pattern": "^a$", "format": "date"})", "no value matches", Code::kInvalidArgument}});
}

TEST(SchemaRefusedTest, WhatIsNoSchema) {
  for (const char* text :
       {"", "{", "[]", "3", R"({"a": 1, "a": 2})", R"({"uniqueItems": 3})", R"({"type": "banana"})",
        R"({"type": []})", R"({"properties": {"a": 3}})", R"({"required": "a"})",
        R"({"minLength": -1})", R"({"maxItems": 1.5})", R"({"minimum": "3"})",
        R"({"exclusiveMinimum": true})", R"({"pattern": "("})", R"({"pattern": 3})",
        R"({"items": 3})", R"({"enum": 3})", R"({"multipleOf": 0})"}) {
    const auto rules = SchemaRules(text, "");
    ASSERT_FALSE(rules) << text;
    EXPECT_EQ(rules.error().code, Code::kInvalidArgument) << text << rules.error().message;
  }
}

TEST(SchemaRefusedTest, DeepSchemasAndLongChainsAreBounded) {
  std::string deep = R"({"type": "string"})";
  for (int i = 0; i < 20; ++i)
    deep = R"({"items": {"anyOf": [)" + deep + R"(, {"type": "null"}]}})";
  EXPECT_TRUE(SchemaRules(deep, ""));
  std::string chain = R"({"$defs": {"a0": {"type": "null"})";
  for (int i = 1; i < 900; ++i)
    chain += R"(, "a)" + std::to_string(i) + R"(": {"items": {"$ref": "#/$defs/a)" +
             std::to_string(i - 1) + R"("}})";
  EXPECT_TRUE(SchemaRules(chain + R"(}, "$ref": "#/$defs/a899"})", ""));
  EXPECT_TRUE(SchemaRules(
      R"({"properties": {"a": {"not": {}}, "b": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "null"}}})",
      "/properties/b"));
  EXPECT_FALSE(SchemaRules(R"({"properties": {}})", "/properties/b"));
}

// Twenty thousand different parts, and parts whose rules have two megabytes.
TEST(SchemaRefusedTest, SchemasThatMultiplyAreBounded) {
  const auto parts = [](int count, const std::string& text) {
    std::string out = R"({"prefixItems": [{"const": "first"})";
    for (int i = 0; i < count; ++i) out += R"(, {"const": ")" + text + std::to_string(i) + R"("})";
    return out + "]}";
  };
  EXPECT_TRUE(SchemaRules(parts(1'000, ""), ""));
  EXPECT_TRUE(SchemaRules(parts(100, std::string(1'000, 'x')), ""));
  CheckRefused({{parts(20'001, ""), "price of at most 8000"},
                {parts(3'000, std::string(1'000, 'x')), "price of at most 8000"}});
}

}  // namespace
}  // namespace latte::schema_refused_test
