#include "src/chat/tools/value_schema.h"

#include <gtest/gtest.h>

namespace latte::value_schema_test {
namespace {

constexpr uint8_t kNumbers = kJsonInteger | kJsonFraction;

uint8_t TypesIn(const std::string& schema, const std::string& root = "{}") {
  return ValuesOf(Json::Parse(schema, "schema").value(), Json::Parse(root, "root").value()).types;
}

TEST(ValueSchema, ReadsTypesAndUnions) {
  EXPECT_EQ(TypesIn(R"({"type": "string"})"), kJsonString);
  EXPECT_EQ(TypesIn(R"({"type": "number"})"), kNumbers);
  EXPECT_EQ(TypesIn(R"({"type": ["string", "null"]})"), kJsonString | kJsonNull);
  EXPECT_EQ(TypesIn(R"({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null})"),
            kJsonString | kJsonNull);
  EXPECT_EQ(TypesIn(R"({"oneOf": [{"type": "integer"}, {"type": "array", "items": {}}]})"),
            kJsonInteger | kJsonArray);
  EXPECT_EQ(TypesIn(R"({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]})"),
            kJsonString);
  EXPECT_EQ(TypesIn(R"({"type": "integer", "nullable": true})"), kJsonInteger | kJsonNull);
  EXPECT_EQ(TypesIn(R"({"description": "any"})"), kAnyJsonType);
  EXPECT_EQ(TypesIn("true"), kAnyJsonType);
  EXPECT_EQ(TypesIn(R"({"type": "date"})"), kAnyJsonType);
}

TEST(ValueSchema, ReadsValuesAndWhatKeywordsSpeakOf) {
  EXPECT_EQ(TypesIn(R"({"enum": ["1", "2"]})"), kJsonString);
  EXPECT_EQ(TypesIn(R"({"enum": ["1", 2, null]})"), kJsonString | kJsonInteger | kJsonNull);
  EXPECT_EQ(TypesIn(R"({"const": "7"})"), kJsonString);
  EXPECT_EQ(TypesIn(R"({"const": null})"), kJsonNull);
  EXPECT_EQ(TypesIn(R"({"const": 2.0})"), kJsonInteger);
  EXPECT_EQ(TypesIn(R"({"pattern": "^[0-9]+$"})"), kJsonString);
  EXPECT_EQ(TypesIn(R"({"properties": {"a": {}}})"), kJsonObject);
  EXPECT_EQ(TypesIn(R"({"items": {"type": "string"}, "minItems": 1})"), kJsonArray);
  const auto values =
      ValuesOf(Json::Parse(R"({"enum": ["1", 2]})", "s").value(), Json::Parse("{}", "r").value())
          .values;
  EXPECT_EQ(values, (std::set<std::string>{"\"1\"", "2"}));
}

TEST(ValueSchema, FollowsReferences) {
  const std::string root = R"({"$defs": {"Day": {"type": "string"}, "a/b": {"$ref": "#/$defs/Day"},
    "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "integer"}]}},
    "properties": {"x": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}}, "type": "object"})";
  EXPECT_EQ(TypesIn(R"({"$ref": "#/$defs/Day"})", root), kJsonString);
  EXPECT_EQ(TypesIn(R"({"$ref": "#/$defs/a~1b", "description": "d"})", root), kJsonString);
  EXPECT_EQ(TypesIn(R"({"$ref": "#/properties/x/anyOf/1"})", root), kJsonBoolean);
  EXPECT_EQ(TypesIn(R"({"$ref": "#"})", root), kJsonObject);
  EXPECT_EQ(TypesIn(R"({"$ref": "#/$defs/Nowhere"})", root), kAnyJsonType);
  EXPECT_EQ(TypesIn(R"({"$ref": "#/properties/x/anyOf/2"})", root), kAnyJsonType);
  EXPECT_EQ(TypesIn(R"({"$ref": "https://example.org/day.json"})", root), kAnyJsonType);
  EXPECT_EQ(TypesIn(R"({"$ref": "#/$defs/Loop"})", root), kAnyJsonType);
}

// Each reference leads to two: without a bound, the effort doubles with every one.
TEST(ValueSchema, ReferencesThatMultiplyTakeNoTime) {
  std::string defs;
  for (int i = 0; i < 60; ++i) {
    const std::string next = R"({"$ref": "#/$defs/d)" + std::to_string(i + 1) + "\"}";
    defs += "\"d" + std::to_string(i) + "\": {\"anyOf\": [" + next + ", " + next + "]},";
  }
  const std::string root = "{\"$defs\": {" + defs + "\"d60\": {\"type\": \"null\"}}}";
  EXPECT_EQ(TypesIn(R"({"$ref": "#/$defs/d0"})", root), kAnyJsonType);
}

TEST(ValueSchema, OnlyAPlainTypeStringIsPlainText) {
  const auto plain = [](const std::string& schema) {
    const Json json = Json::Parse(schema, "schema").value();
    return ValuesOf(json, json).plain_text;
  };
  EXPECT_TRUE(plain(R"({"type": "string", "enum": ["a"]})"));
  EXPECT_FALSE(plain(R"({"type": ["string"]})"));
  EXPECT_FALSE(plain(R"({"anyOf": [{"type": "string"}]})"));
  EXPECT_FALSE(plain(R"({"enum": ["a"]})"));
  EXPECT_FALSE(plain(R"({"type": "string", "nullable": true})"));
}

TEST(ValueSchema, FindsTheParametersOfAFunction) {
  const auto of = [](const std::string& schema, std::string_view parameter) {
    return ParametersOf(Json::Parse(schema, "schema").value()).Of(parameter).types;
  };
  EXPECT_EQ(of(R"({"properties": {"a": {"type": "string"}}})", "a"), kJsonString);
  EXPECT_EQ(of(R"({"properties": {"a": {"type": "string"}}})", "b"), kAnyJsonType);
  EXPECT_EQ(of(R"({"additionalProperties": {"type": "string"}})", "b"), kJsonString);
  EXPECT_EQ(of(R"({"additionalProperties": false})", "b"), kAnyJsonType);
  EXPECT_EQ(
      of(R"({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"const": "1"}}}}})", "a"),
      kJsonString);
  const std::string either = R"({"anyOf": [{"properties": {"a": {"type": "string"}}},
    {"properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}}]})";
  EXPECT_EQ(of(either, "a"), kJsonString | kJsonInteger);
  EXPECT_EQ(of(either, "b"), kJsonBoolean);
}

}  // namespace
}  // namespace latte::value_schema_test
