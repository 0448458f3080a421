#include "src/chat/tools/json_mender.h"

#include <gtest/gtest.h>

#include "src/base/json.h"
#include "tests/support/byte_source.h"
#include "tests/support/property.h"

namespace latte::json_mender_test {
namespace {

using testing_support::ByteSource;

std::string MendInPieces(std::string_view text, size_t step) {
  JsonMender mender;
  std::string out;
  for (size_t at = 0; at < text.size(); at += step) mender.Push(text.substr(at, step), &out);
  mender.Finish(&out);
  return out;
}

std::string Mend(std::string_view text) { return MendInPieces(text, text.size() + 1); }

TEST(JsonMender, JsonPassesByteForByte) {
  for (const char* text :
       {R"({"a": [1, -2.5e+3, "x"], "b": {"c": null, "d": [true, false, []], "e": {}}})",
        " {\n  \"a\" : 1 ,\r\n\t\"b\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\" }\n",
        R"([0, 0.5, 1E9, "é", {"": ""}])", R"({"{": "}", "[": ",", ":": "'"})"})
    EXPECT_EQ(Mend(text), text);
}

TEST(JsonMender, WhatPythonWritesBecomesJson) {
  EXPECT_EQ(Mend(R"([NaN, Infinity, -Infinity, True, False, None])"),
            "[null, null, null, true, false, null]");
  EXPECT_EQ(Mend(R"({'a': 'it\'s "b"', "c": 'd'})"), R"({"a": "it's \"b\"", "c": "d"})");
  EXPECT_EQ(Mend("[1e999, -1e999]"), "[null, null]");
}

TEST(JsonMender, WordsAreTexts) {
  EXPECT_EQ(Mend("{a: New York, b: 01, c: +1, d: .5, e: 5., f: 0x1F}"),
            R"({"a": "New York", "b": "01", "c": "+1", "d": ".5", "e": "5.", "f": "0x1F"})");
  EXPECT_EQ(Mend("[a\"b, c\\d]"), R"(["a\"b", "c\\d"])");
}

TEST(JsonMender, CommasAndColonsAreAddedAndLeftOut) {
  EXPECT_EQ(Mend("[1, 2, ]"), "[1, 2 ]");
  EXPECT_EQ(Mend("[,1,,2]"), "[1,2]");
  EXPECT_EQ(Mend(R"({"a": 1, "b": 2,})"), R"({"a": 1, "b": 2})");
  EXPECT_EQ(Mend(R"({"a": 1 "b": [2 3]})"), R"({"a": 1 ,"b": [2 ,3]})");
  EXPECT_EQ(Mend(R"({"a" 1, "b", "c":})"), R"({"a" :1, "b":null, "c":null})");
}

TEST(JsonMender, BracketsMatch) {
  EXPECT_EQ(Mend(R"({"a": [1, {"b": 2)"), R"({"a": [1, {"b": 2}]})");
  EXPECT_EQ(Mend(R"({"a": [1, {"b": 2}, "c": 3})"), R"({"a": [1, {"b": 2}, "c" ,3]})");
  EXPECT_EQ(Mend("[1}, 2]"), "[1, 2]");
  EXPECT_EQ(Mend(R"({"a": 1}} {"b": 2})"), R"({"a": 1})");
  EXPECT_EQ(Mend(R"({"a": "b)"), R"({"a": "b"})");
  EXPECT_EQ(Mend(R"({"a)"), R"({"a":null})");
}

TEST(JsonMender, TextsHaveNoControlCharactersAndNoHalfOfAPair) {
  EXPECT_EQ(Mend("[\"a\nb\tc\x01\"]"), R"(["a\nb\u0009c\u0001"])");
  EXPECT_EQ(Mend(R"(["\ud83d", "\ude00", "\ud83dx", "\ud83d\n", "\ud83d\ud83d\ude00"])"),
            R"(["\ufffd", "\ufffd", "\ufffdx", "\ufffd\n", "\ufffd\ud83d\ude00"])");
  EXPECT_EQ(Mend(R"(["\d", "\x41", "\u12", "\u12)"), R"(["\\d", "\\x41", "\\u12", "\\u12"])");
}

TEST(JsonMender, TheFirstValueOfANameCounts) {
  EXPECT_EQ(Mend(R"({"a": 1, "a": 2})"), R"({"a": 1})");
  EXPECT_EQ(Mend(R"({"a": 1, "\u0061": {"a": [2]}, "b": 3, "a": "x"})"), R"({"a": 1, "b": 3})");
  EXPECT_EQ(Mend(R"({"a": {"a": 1}, "b": {"a": 2}})"), R"({"a": {"a": 1}, "b": {"a": 2}})");
  EXPECT_EQ(Mend(R"({"a": 1, "a":})"), R"({"a": 1})");
  EXPECT_EQ(Mend(R"({"a": 1, "a": [2)"), R"({"a": 1})");
}

TEST(JsonMender, TextComesAtOnce) {
  JsonMender mender;
  std::string out;
  mender.Push(R"({"code": "int ma)", &out);
  EXPECT_EQ(out, R"({"code": "int ma)");
  EXPECT_FALSE(mender.whole());
  mender.Push("in\"}", &out);
  EXPECT_TRUE(mender.whole());
}

TEST(JsonMender, WhatIsCutIsNoJson) {
  for (const char* text :
       {R"({"a": "b)", R"({"a": tr)", R"({"a)", R"({"a": 1, )", R"({"a": 1)", "{"}) {
    JsonMender mender;
    std::string out;
    mender.Push(text, &out);
    mender.Cut(&out);
    EXPECT_EQ(out, text);
    EXPECT_FALSE(mender.whole());
  }
}

// Parts of JSON and of what is almost JSON, in any order.
std::string AlmostJson(ByteSource* choose) {
  constexpr std::string_view kParts[] = {
      "{",  "}",   "[",    "]",  ",",       ":",    "\"a\"",   "\"b\"",   "'c'",  "\"",     "'",
      "\\", "\\u", "d83d", "de", "00",      " ",    "\n",      "true",    "None", "NaN",    "1",
      "-",  "2.5", "e",    "é",  "\"a\":1", "word", "\\ud83d", "\\ude00", "0061", "\"a\":{"};
  std::string out;
  while (!choose->empty()) out += kParts[choose->Below(std::size(kParts))];
  return out;
}

TEST(JsonMender, AnyTextBecomesJsonAndTheSameHoweverItIsCut) {
  testing_support::CheckProperty(5'000, 60, [](const std::vector<uint8_t>& what, bool in_object) {
    ByteSource choose(what);
    const std::string text = (in_object ? "{" : "[") + AlmostJson(&choose);
    const std::string mended = Mend(text);
    const auto json = Json::Parse(mended, "mended");
    RC_LOG() << text << "\n" << mended << "\n";
    RC_ASSERT(json.has_value());
    RC_ASSERT(MendInPieces(text, 1) == mended);
    RC_ASSERT(MendInPieces(text, 3) == mended);
    RC_ASSERT(Mend(mended) == mended);
    if (Json::Parse(text, "text")) RC_ASSERT(mended == text);
  });
}

}  // namespace
}  // namespace latte::json_mender_test
