// Prices of grammars, at their bounds and above; without xgrammar.
#include "src/grammar/pattern/rule_price.h"

#include <gtest/gtest.h>

#include "src/grammar/pattern/pattern_rules.h"
#include "src/grammar/schema/schema_rules.h"

namespace latte::rule_price_test {
namespace {

std::string Times(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// The text of the refusal; empty: it is not refused.
std::string RefusalOf(const std::string& ebnf) {
  const Status status = CheckPrice(ebnf);
  if (status) return {};
  EXPECT_EQ(status.error().code, Code::kUnsupported);
  EXPECT_EQ(status.error().message.find("grammar: "), 0U) << status.error().message;
  return status.error().message;
}

void ExpectNamed(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

int64_t PriceInUnits(std::string_view rules) { return PriceOfRules(rules) / 1000; }

TEST(RulePriceTest, ClassesCostWhatTokensTheyTake) {
  EXPECT_EQ(PriceInUnits("[0-9]"), 0);
  EXPECT_EQ(PriceInUnits("[0-9a-fA-F]{4}"), 0);
  EXPECT_EQ(PriceInUnits("[a-z]"), 4);
  EXPECT_EQ(PriceInUnits("[a-zA-Z]"), 30);
  EXPECT_EQ(PriceInUnits(R"([^"\\\x00-\x1f])"), 30);
  EXPECT_EQ(PriceInUnits(R"([\u0061-\u007a])"), 4);
  EXPECT_EQ(PriceInUnits(R"([\U00000100-\U0010ffff])"), 4);
  EXPECT_EQ(PriceInUnits(R"([a-z\u4e00-\u9fff])"), 30);
  EXPECT_EQ(PriceInUnits("[^a]"), 30);
  EXPECT_EQ(PriceInUnits("[a-z]{10}"), 40);
  EXPECT_EQ(PriceInUnits("[a-z]{1, 100000}"), 256 * 4);
  EXPECT_EQ(PriceInUnits("[a-z]*"), 4);
  EXPECT_EQ(PriceInUnits(R"("[a-zA-Z]" # [a-zA-Z])"), 0);
  EXPECT_EQ(PriceInUnits(Times("abcd", 25'000)), 1'000);
}

TEST(RulePriceTest, TheSumIsBounded) {
  const auto rules = [](int count) { return "root ::= " + Times("[a-zA-Z] ", count); };
  EXPECT_EQ(RefusalOf(rules(260)), "");
  ExpectNamed(RefusalOf(rules(280)), {"at most 8000", "found 8"});
}

TEST(RulePriceTest, CountsInOneAnotherAreBounded) {
  const auto nested = [](int inner, int outer) {
    return "root ::= ([a-z]{1," + std::to_string(inner) + "}){1," + std::to_string(outer) + "}";
  };
  EXPECT_EQ(RefusalOf(nested(16, 16)), "");
  ExpectNamed(RefusalOf(nested(17, 16)), {"rule 'root'", "256", "272"});
  // By references, in both orders.
  ExpectNamed(RefusalOf("root ::= a{1,50}\na ::= [a-z]{1,50}"), {"rule 'root'", "2500"});
  ExpectNamed(RefusalOf("a ::= [a-z]{1,50}\nroot ::= a{1,50}"), {"2500"});
  ExpectNamed(RefusalOf("root ::= ((\"a\"?){1,20} | \"b\"){0,20}"), {"rule 'root'"});
  // A count alone is none, and a separator makes them independent.
  EXPECT_EQ(RefusalOf("root ::= [a-z]{1,10000}"), "");
  EXPECT_EQ(RefusalOf("root ::= ([a-z]{1,50} \",\"){1,50}"), "");
  EXPECT_EQ(RefusalOf("root ::= ([a-z]{4}){1,400}"), "");
}

TEST(RulePriceTest, PartsThatMayBeLeftOutAreBounded) {
  const auto row = [](int count) { return "root ::= " + Times("(\"a\" | \"\") ", count); };
  EXPECT_EQ(RefusalOf(row(64)), "");
  ExpectNamed(RefusalOf(row(65)), {"rule 'root'", "at most 64", "found 65"});
  ExpectNamed(RefusalOf(row(8'000)), {"at most 64"});
  ExpectNamed(RefusalOf("root ::= " + Times("\"a\"? ", 100)), {"at most 64"});
  ExpectNamed(RefusalOf("root ::= " + Times("[a-z]* ", 100)), {"at most 64"});
  ExpectNamed(RefusalOf("root ::= " + Times("(\"a\" | \"b\"){1,9} ", 100)), {"at most 64"});
  ExpectNamed(RefusalOf("root ::= (\"a\" | \"\"){8000}"), {"rule 'root'", "16000"});
  EXPECT_EQ(RefusalOf("root ::= " + Times("\"a\"? \"b\" ", 100)), "");
  // By references.
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 100; ++i)
    chain += "r" + std::to_string(i) + " ::= (\"a\" | \"\") r" + std::to_string(i + 1) + "\n";
  ExpectNamed(RefusalOf(chain + "r100 ::= \"b\""), {"at most 64"});
  std::string doubled = "root ::= r0\n";
  for (int i = 0; i < 20; ++i)
    doubled += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " r" +
               std::to_string(i + 1) + "\n";
  ExpectNamed(RefusalOf(doubled + "r20 ::= \"x\" | \"\""), {"at most 64"});
  ExpectNamed(RefusalOf("root ::= s\ns ::= s s | \"a\" | \"\""), {"at most 64"});
}

TEST(RulePriceTest, UsualGrammarsAreWithinTheBounds) {
  EXPECT_EQ(RefusalOf(R"(root ::= ws value ws
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ws ":" ws value ("," ws string ws ":" ws value)*)? "}"
array ::= "[" ws (value ("," ws value)*)? "]"
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws ::= | " " | "\n" [ \t]{0,20})"),
            "");
  std::string words = "root ::= \"w\"";
  for (int i = 0; i < 5'000; ++i) words += " | \"word " + std::to_string(i) + "\"";
  EXPECT_EQ(RefusalOf(words), "");
}

TEST(RulePriceTest, AnyTextHasAPrice) {
  for (const char* text : {"", "[", "\"", "(((", ")))", "root ::= (", "root ::= [", "root ::= a{",
                           "root ::= a{1,", "a[b ::= c", "::=", "\\", "root ::= \"\\"})
    EXPECT_EQ(RefusalOf(text), "") << text;
  EXPECT_EQ(RefusalOf(Times("a[", 100'000)), "");
  EXPECT_EQ(RefusalOf(Times("a", 200'000)), "");
}

TEST(RulePriceTest, ASchemaNamesThePartThatCostsTooMuch) {
  const auto properties = [](int count, const std::string& schema) {
    std::string out = R"({"type": "object", "properties": {"first": {"type": "null"})";
    for (int i = 0; i < count; ++i) out += ", \"p" + std::to_string(i) + "\": " + schema + "";
    return out + "}}";
  };
  EXPECT_TRUE(SchemaRules(properties(400, R"({"type": "string"})"), ""));
  EXPECT_TRUE(SchemaRules(properties(400, R"({"type": "string", "maxLength": 4000})"), ""));
  std::string patterns = R"({"properties": {)";
  for (int i = 0; i < 20; ++i)
    patterns += (i > 0 ? ", \"p" : "\"p") + std::to_string(i) + R"(": {"pattern": "^[A-Za-z]{)" +
                std::to_string(20 + i) + "}$\"}";
  const auto refused = SchemaRules(patterns + "}}", "");
  ASSERT_FALSE(refused);
  ExpectNamed(refused.error().message, {"'properties.p", "at most 8000", "counts in patterns"});
  const auto optional = SchemaRules(properties(1'500, R"({"type": "null"})"), "");
  ASSERT_FALSE(optional);
  ExpectNamed(optional.error().message, {"at most 8000"});
  std::string ranges = R"({"properties": {)";
  for (int i = 0; i < 1'500; ++i)
    ranges += (i > 0 ? ", \"p" : "\"p") + std::to_string(i) +
              R"(": {"type": "integer", "minimum": )" + std::to_string(i * 1237 + 13) +
              R"(, "maximum": )" + std::to_string(i * 777'777 + 3'711'000) + "}";
  EXPECT_FALSE(SchemaRules(ranges + "}}", ""));
}

TEST(RulePriceTest, MembersOfAnObjectAreBounded) {
  const auto members = [](int count) {
    std::string out = R"({"required": ["p0"], "properties": {"p0": {})";
    for (int i = 1; i < count; ++i) out += ", \"p" + std::to_string(i) + "\": false";
    return out + "}}";
  };
  EXPECT_TRUE(SchemaRules(members(2'000), ""));
  const auto refused = SchemaRules(members(2'001), "");
  ASSERT_FALSE(refused);
  ExpectNamed(refused.error().message, {"at most 2000 members, found 2001"});
}

TEST(RulePriceTest, PatternsTakeABoundedNumberOfStates) {
  const auto message = [](const std::string& schema) {
    const auto rules = SchemaRules(schema, "");
    return rules ? std::string() : rules.error().message;
  };
  ExpectNamed(message(R"({"type": "string", "pattern": "^(([a-z]{1,200}){1,200}){1,20}$"})"),
              {"'pattern'", "512 states"});
  ExpectNamed(message(R"({"pattern": "^([a-z]{1,50}){1,50}$"})"), {"'pattern'", "512 states"});
  ExpectNamed(message(R"({"properties": {"a": {"pattern": "^([0-9]{1,50}){1,50}$"}}})"),
              {"'properties.a'", "512 states"});
  EXPECT_EQ(message(R"({"pattern": "^([0-9]{1,5}){1,50}$"})"), "");
  EXPECT_EQ(message(R"({"pattern": "^[A-Z]{2}-.{0,4000}$"})"), "");
  EXPECT_EQ(message(R"({"pattern": "^[a-z]{1,500}$"})"), "");
  EXPECT_FALSE(RegexRules("([a-z]{1,50}){1,50}"));
  EXPECT_TRUE(RegexRules("[a-z]{1,5000}"));
  EXPECT_TRUE(RegexRules("(a|b)*c"));
  EXPECT_FALSE(RegexRules("[]"));
}

TEST(RulePriceTest, SchemasThatNeverEndAreNamed) {
  for (const auto& [schema, place] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})", "no end"},
           {R"({"type": "array", "items": {"$ref": "#"}, "minItems": 1})", "no end"},
           {R"({"properties": {"x": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "object",
                "properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["next"]}}})",
            "'properties.x'"},
           {R"({"$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}, "required": ["b"]},
                "b": {"properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}},
                "$ref": "#/$defs/a"})",
            "no end"}}) {
    const auto rules = SchemaRules(schema, "");
    ASSERT_FALSE(rules) << schema;
    EXPECT_EQ(rules.error().code, Code::kInvalidArgument);
    ExpectNamed(rules.error().message, {place, "demands itself"});
  }
  EXPECT_TRUE(SchemaRules(R"({"properties": {"a": {"$ref": "#"}}})", ""));
  EXPECT_TRUE(SchemaRules(R"({"type": "array", "items": {"$ref": "#"}})", ""));
  EXPECT_TRUE(SchemaRules(
      R"({"anyOf": [{"type": "null"}, {"items": {"$ref": "#"}, "minItems": 2, "type": "array"}]})",
      ""));
}

}  // namespace
}  // namespace latte::rule_price_test
