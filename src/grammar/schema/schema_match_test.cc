// Answers hold to their schema: objects, arrays, numbers, choices and references.
#include "src/grammar/schema/schema_matches_test.h"

namespace latte::schema_match_test {
namespace {

using SchemaMatchTest = SchemaMatches;

TEST_F(SchemaMatchTest, RequiredMembersWithoutASchema) {
  Check(
      {{R"({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a", "b"]})",
        {R"({"a": true, "b": 3})", R"({"a": true, "b": {"x": [null]}})"},
        {R"({"a": true})", R"({"b": 3})", R"({"a": true, "b": 3, "c": 1})"}},
       {R"({"type": "object", "required": ["x"]})",
        {R"({"x": 1})", R"({"x": 1, "y": 2})"},
        {"{}", R"({"y": 2})"}},
       {R"({"type": "object", "additionalProperties": {"type": "integer"}, "required": ["n\"", "m"]})",
        {R"({"n\"": 1, "m": 2, "k": 3})"},
        {R"({"n\"": 1})", R"({"n\"": 1, "m": "x"})"}},
       {R"({"required": ["p1"], "patternProperties": {"^p": {"type": "null"}}})",
        {R"({"p1": null, "p2": null})"},
        {R"({"p1": 1})", R"({"p2": null})"}},
       {R"({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}})",
        {R"({"a": 1})", R"({"b": 2})", R"({"a": 1, "b": 2})"},
        {"{}", R"({"a": 2})", R"({"c": 1})"}}});
}

TEST_F(SchemaMatchTest, ReferencesByEveryPointer) {
  const std::string tail = R"(, "required": ["b"]})";
  const auto b_is = [&](const std::string& reference, const std::string& more) {
    return R"({"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "b": {"$ref": ")" +
           reference + R"("}})" + more + tail;
  };
  const std::vector<std::string> taken = {R"({"b": true})"};
  const std::vector<std::string> refused = {R"({"b": 1})", R"({"b": "x"})"};
  Check(
      {{b_is("#/properties/a/anyOf/1", ""), taken, refused},
       {b_is("#/$defs/x~1y~0z/0", R"(, "$defs": {"x/y~z": [{"type": "boolean"}]})"), taken,
        refused},
       {b_is("#/$defs/x%20y%25%7E1", R"(, "$defs": {"x y%/": {"type": "boolean"}})"), taken,
        refused},
       {b_is("#flag", R"(, "$defs": {"k": {"$anchor": "flag", "type": "boolean"}})"), taken,
        refused},
       {b_is("https://example.org/s#/$defs/k",
             R"(, "$id": "https://example.org/s", "$defs": {"k": {"type": "boolean"}})"),
        taken, refused},
       {b_is("item.json", R"(, "$defs": {"k": {"$id": "item.json", "type": "boolean"}})"), taken,
        refused},
       {b_is("#/$defs/1", R"(, "$defs": {"1": {"$ref": "#/$defs/2"}, "2": {"type": "boolean"}})"),
        taken, refused},
       {R"({"type": "object", "properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["n"]})",
        {R"({"n": 1, "next": {"n": 2}})"},
        {R"({"next": {"n": 2}})", R"({"n": 1, "next": {}})"}}});
}

TEST_F(SchemaMatchTest, ConstraintsBesideReferencesAndChoices) {
  Check(
      {{R"({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 2}]})",
        {"5", "2", "-7"},
        {"3", "1.5", R"("x")"}},
       {R"({"type": ["string", "null"], "anyOf": [{"type": "string", "maxLength": 1}, {"type": "null"}, {"type": "integer"}]})",
        {"null", R"("a")"},
        {"1", R"("ab")"}},
       {R"({"$defs": {"n": {"type": "number", "minimum": 0}}, "$ref": "#/$defs/n", "maximum": 1})",
        {"0.5", "1", "0"},
        {"2", "-1"}},
       {R"({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
              {"properties": {"a": {"enum": ["x", 1]}, "b": {"const": 2}}}]})",
        {R"({"a": "x"})", R"({"a": "x", "b": 2})"},
        {R"({"a": 1})", R"({"a": "y"})", "{}"}},
       {R"({"type": "string", "enum": ["a", 1, null]})", {R"("a")"}, {"1", "null"}},
       {R"({"enum": ["ab", "c", "D"], "pattern": "^[a-z]", "minLength": 2})",
        {R"("ab")"},
        {R"("c")", R"("D")"}},
       {R"({"enum": [1, 2, 3, 4.5], "minimum": 2, "type": "integer"})", {"2", "3"}, {"1", "4.5"}},
       {R"({"type": "object", "properties": {"a": {}}, "additionalProperties": false, "anyOf": [{"properties": {"b": {}}, "required": ["b"]}, {"required": ["a"]}]})",
        {R"({"a": 1})"},
        {R"({"b": 1})", R"({"a": 1, "b": 1})"}}});
}

TEST_F(SchemaMatchTest, TypesAsListsAndNullable) {
  Check({{R"({"type": ["integer", "null"]})", {"1", "null"}, {"1.5", "true"}},
         {R"({"type": ["number", "integer"]})", {"1.5", "1"}, {"null"}},
         {R"({"type": ["string", "array"], "maxLength": 1, "maxItems": 1})",
          {R"("a")", "[3]"},
          {R"("ab")", "[3, 4]", "3"}},
         {R"({"type": "string", "nullable": true})", {R"("a")"}, {"null"}},
         {R"({"minimum": 3})", {"3", "4.5"}, {"2", R"("a")"}},
         {R"({})", {"null", R"([{"a": 1e5}])"}, {"nul"}}});
}

TEST_F(SchemaMatchTest, OneOfWhereOneExcludesTheOthers) {
  Check(
      {{R"({"oneOf": [{"type": "string"}, {"type": "integer"}]})", {R"("a")", "1"}, {"1.5"}},
       {R"({"oneOf": [{"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind"]},
              {"properties": {"kind": {"const": "b"}}, "required": ["kind"]}]})",
        {R"({"kind": "a", "n": 1})", R"({"kind": "b"})"},
        {R"({"kind": "b", "n": 1})", R"({"kind": "c"})"}},
       {R"({"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"], "oneOf": [
              {"properties": {"kind": {"const": "a"}}}, {"properties": {"kind": {"const": "b"}, "m": {"type": "null"}}}]})",
        {R"({"kind": "a"})", R"({"kind": "b", "m": null})"},
        {R"({"kind": "a", "m": null})"}},
       {R"({"oneOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]})",
        {R"({"a": 1})", R"({"b": 1})"},
        {R"({"a": 1, "b": 1})"}},
       {R"({"oneOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 4}]})",
        {"3", "4"},
        {"3.5"}}});
}

TEST_F(SchemaMatchTest, Numbers) {
  Check(
      {{R"({"type": "integer"})", {"0", "-12", "99999999999999999999"}, {"01", "1.0", "1e3", "+1"}},
       {R"({"type": "number"})", {"0", "-0.5", "1e-5", "12.25E+10"}, {"1.", ".5", "1e999", "01"}},
       {R"({"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991})",
        {"9007199254740991", "-9007199254740991", "0"},
        {"9007199254740992", "-9007199254740992"}},
       {R"({"type": "integer", "minimum": 98, "maximum": 1203})",
        {"98", "99", "100", "999", "1000", "1199", "1203"},
        {"97", "1204", "1210", "9", "0980"}},
       {R"({"type": "integer", "exclusiveMinimum": -3, "exclusiveMaximum": 2.5})",
        {"-2", "0", "2"},
        {"-3", "3"}},
       {R"({"type": "integer", "minimum": -1.5})", {"-1", "0", "123456"}, {"-2"}},
       {R"({"type": "integer", "maximum": -7})", {"-7", "-8", "-10", "-123"}, {"-6", "0", "7"}},
       {R"({"type": "number", "minimum": 0.25, "maximum": 1.5})",
        {"0.25", "0.3", "0.999", "1", "1.0", "1.49", "1.5", "1.50"},
        {"0.2", "0.249", "1.51", "2", "1.501", "0", "1e-1"}},
       {R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})",
        {"0.001", "0.5", "0.999"},
        {"0", "0.0", "1", "1.0", "-0.5"}},
       {R"({"type": "number", "minimum": -2.5, "exclusiveMaximum": -0.5})",
        {"-2.5", "-1", "-0.51"},
        {"-0.5", "-0.4", "-2.51", "0"}},
       {R"({"type": "number", "exclusiveMaximum": 0})", {"-0.1", "-5"}, {"0", "-0", "-0.0"}},
       {R"({"type": "number", "minimum": 12.5, "maximum": 12.75})",
        {"12.5", "12.6", "12.75", "12.749"},
        {"12.76", "12.49", "12", "13"}},
       {R"({"type": "integer", "multipleOf": 3})", {"0", "3", "-12", "999"}, {"1", "10", "-2"}},
       {R"({"type": "integer", "multipleOf": 250, "minimum": 0})",
        {"0", "250", "1000", "750"},
        {"100", "-250", "1"}},
       {R"({"type": "integer", "multipleOf": 7, "minimum": 8, "maximum": 30})",
        {"14", "21", "28"},
        {"7", "8", "35"}},
       {R"({"type": "number", "multipleOf": 5})", {"10"}, {"2.5", "11"}}});
}

TEST_F(SchemaMatchTest, Arrays) {
  Check(
      {{R"({"type": "array"})", {"[]", R"([1, "a", []])"}, {"[1,]", "{}"}},
       {R"({"items": {"type": "boolean"}, "minItems": 1, "maxItems": 2})",
        {"[true]", "[ true , false ]"},
        {"[]", "[true,true,true]", "[1]"}},
       {R"({"prefixItems": [{"type": "integer"}, {"type": "null"}], "items": {"type": "boolean"}})",
        {"[]", "[1]", "[1,null]", "[1,null,true,false]"},
        {"[null]", "[1,null,1]"}},
       {R"({"prefixItems": [{"type": "integer"}, {"type": "null"}], "minItems": 2})",
        {"[1,null]"},
        {"[1]", "[1,null,true]"}},
       {R"({"prefixItems": [{"type": "integer"}], "minItems": 2, "maxItems": 3})",
        {R"([1,"a"])", "[1,2,3]"},
        {"[1]", "[1,2,3,4]"}},
       {R"({"prefixItems": [{"type": "integer"}, {"type": "null"}], "maxItems": 1})",
        {"[1]", "[]"},
        {"[1,null]"}},
       {R"({"items": [{"type": "integer"}, {"type": "null"}], "additionalItems": false})",
        {"[1,null]"},
        {"[1,null,2]", "[null]"}},
       {R"({"items": false})", {"[]"}, {"[1]"}},
       {R"({"prefixItems": [{"const": 1}, false], "items": {"type": "null"}})",
        {"[]", "[1]"},
        {"[1,null]"}}});
}

TEST_F(SchemaMatchTest, Members) {
  Check(
      {{R"({"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}, "required": ["b"]})",
        {R"({"b":2})", R"({"a":1,"b":2,"c":3})", R"({ "b" : 2 , "c" : 3 })"},
        {R"({"a":1})", R"({"b":2,"a":1})", R"({,"b":2})"}},
       {R"({"properties": {"a": {"const": 1}}, "additionalProperties": {"type": "null"}})",
        {R"({"a":1,"b":null})", R"({"b":null})", R"({"aa":null})", "{}"},
        {R"({"a":null})", R"({"b":1})", R"({"b":null,"a":null})"}},
       {R"({"patternProperties": {"^x": {"type": "integer"}, "y$": {"type": "null"}}})",
        {R"({"x1":1})", R"({"ay":null})"},
        {R"({"xy":1})", R"({"xy":null})", R"({"z":1})"}},
       {R"({"properties": {"xa": {"minimum": 3}}, "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "null"}})",
        {R"({"xa":4,"xb":1,"c":null})"},
        {R"({"xa":2})", R"({"xa":3.5})", R"({"xb":null})", R"({"c":1})"}},
       {R"({"propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "integer"}})",
        {R"({"a":1,"b":2})", R"({"b":2})", "{}"},
        {R"({"c":1})", R"({"a":"x"})"}},
       {R"({"propertyNames": {"pattern": "^[a-c]+$", "maxLength": 2}})",
        {R"({"ab":1,"c":null})"},
        {R"({"abc":1})", R"({"d":1})"}},
       {R"({"properties": {"ab": {"const": 1}, "d": {"const": 2}}, "propertyNames": {"pattern": "^[a-c]+$"}, "additionalProperties": true})",
        {R"({"ab":1,"c":5})"},
        {R"({"d":2})", R"({"ab":2})"}},
       {R"({"type": "object", "minProperties": 1})", {R"({"a":1})"}, {"{}"}},
       {R"({"properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 2, "maxProperties": 2})",
        {R"({"a":1,"b":1})", R"({"b":1,"c":1})"},
        {R"({"a":1})", R"({"a":1,"b":1,"c":1})"}},
       {R"({"properties": {"a": {}}, "additionalProperties": {"type": "null"}, "minProperties": 2, "maxProperties": 3})",
        {R"({"a":1,"b":null})", R"({"a":1,"b":null,"c":null})"},
        {R"({"b":null})", R"({"a":1})", R"({"a":1,"b":null,"c":null,"d":null})"}},
       {R"({"properties": {"a": {"const": 1}}, "maxProperties": 0})", {"{}"}, {R"({"a":1})"}},
       {R"({"properties": {"a": false, "b": {"const": 1}}})", {R"({"b":1})", "{}"}, {R"({"a":1})"}},
       {R"({"properties": {"a": {"const": 1}}, "unevaluatedProperties": {"type": "null"}})",
        {R"({"a":1,"b":null})"},
        {R"({"b":1})"}},
       {R"({"allOf": [{"properties": {"a": {"const": 1}}}], "unevaluatedProperties": false, "type": "object"})",
        {R"({"a":1})"},
        {R"({"b":1})"}}});
}

// Other names begin as none of so many does.
TEST_F(SchemaMatchTest, ManyMembers) {
  std::string members;
  for (int i = 0; i < 400; ++i)
    members += (i > 0 ? ", " : "") + std::string("\"member") + std::to_string(i) +
               R"(": {"type": "integer"})";
  Check({{R"({"type": "object", "properties": {)" + members + "}}",
          {R"({"member3": 1, "member399": 2})", "{}"},
          {R"({"member399": 2, "member3": 1})"}},
         {R"({"type": "object", "properties": {)" + members + R"(}, "additionalProperties": true})",
          {R"({"member3": 1})", R"({"member3": 1, "memb": "x", "x": null})"},
          {R"({"member3": "x"})", R"({"member399": "x"})"}}});
}

}  // namespace
}  // namespace latte::schema_match_test
