#include "lab/eval/judge_texts.h"

#include <gtest/gtest.h>

#include "src/base/json_out.h"

namespace latte::judge_texts_test {
namespace {

constexpr std::string_view kGreeting = R"({
  "rules": {"story": ["{who.name} says: I am {who.name}."]},
  "tables": {"who": {"attributes": ["name"], "rows": [["Ann"], ["Bob"]]}},
  "variables": {"who": "who"}, "distinct": [], "same": []})";

Result<JudgedTexts> Judge(std::string_view lines, const std::vector<std::string>& marks = {}) {
  return JudgeTexts(*StoryGrammar::FromJson(kGreeting, "greeting"), lines, "f.jsonl", marks);
}

TEST(JudgeTexts, CountsTextsAndSaysWhyTheyAreRefused) {
  const auto judged = Judge(
      "{\"text\": \"Ann says: I am Ann.\"}\n"
      "\n"
      "{\"id\": 7, \"text\": \"Ann says: I am Bob.\"}\r\n"
      "{\"text\": \"Bob says: I am Bob. Bye.\"}");
  ASSERT_TRUE(judged) << ToString(judged.error());
  EXPECT_EQ(judged->report.total.items, 3);
  EXPECT_EQ(judged->report.total.passed, 1);
  ASSERT_EQ(judged->refused.size(), 2u);
  EXPECT_EQ(Dump(JudgedJson(*judged)),
            R"({"stories":{"items":3,"passed":1,"count":3,"share":0.3333333333333333,"refused":[)"
            R"({"line":3,"byte":15,"reason":"at byte 15 found 'Bob.', expected one of 'Ann'"},)"
            R"({"line":4,"byte":19,"reason":"at byte 19 found ' Bye.', expected one of 'end of )"
            R"(text'"}]}})");
  EXPECT_EQ(JudgedTable(*judged),
            "stories         1 of 3       33.3 %  given texts that obey the grammar\n"
            "line 3: at byte 15 found 'Bob.', expected one of 'Ann'\n"
            "line 4: at byte 19 found ' Bye.', expected one of 'end of text'\n");
}

TEST(JudgeTexts, SentenceMarksAreRemovedAtTheEndsOnly) {
  const auto judged = Judge(
      "{\"text\": \"<s><s>Ann says: I am Ann.</s></s>\"}\n"
      "{\"text\": \"</s><s></s>Ann says: I am Ann.<s></s><s>\"}\n"
      "{\"text\": \"<s></s><s>\"}\n"
      "{\"text\": \"Ann says: </s>I am Ann.\"}\n",
      {"<s>", "</s>"});
  ASSERT_TRUE(judged) << ToString(judged.error());
  EXPECT_EQ(judged->report.total.passed, 2);
  EXPECT_EQ(judged->refused.at(0).verdict.at, 0u);
  EXPECT_EQ(judged->refused.at(1).verdict.at, 3u);
  EXPECT_EQ(Judge("{\"text\": \"<s>Ann says: I am Ann.\"}")->report.total.passed, 0);
}

TEST(JudgeTexts, ManyRefusedTextsAreCountedAndTheFirstAreKept) {
  std::string lines;
  for (int i = 0; i < 1002; ++i) lines += "{\"text\": \"x\"}\n";
  const auto judged = Judge(lines);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->report.total.count, 1002);
  EXPECT_EQ(judged->refused.size(), 1000u);
  EXPECT_TRUE(
      JudgedTable(*judged).ends_with("999 more texts are refused; --json lists the first 1000\n"))
      << JudgedTable(*judged);
}

TEST(JudgeTexts, BadLinesAreNamed) {
  const auto refused = [](std::string_view lines, Code code, const std::string& message) {
    const auto judged = Judge(lines);
    ASSERT_FALSE(judged) << lines;
    EXPECT_EQ(judged.error().code, code);
    EXPECT_NE(judged.error().message.find(message), std::string::npos) << judged.error().message;
  };
  refused("", Code::kInvalidArgument,
          "f.jsonl: expected {\"text\": …} on each line, found no text");
  refused(" \n\n", Code::kInvalidArgument, "found no text");
  refused("{\"text\": \"x\"}\nAnn\n", Code::kCorrupt, "f.jsonl: line 2");
  refused("\n[\"x\"]", Code::kCorrupt, "f.jsonl: line 2: expected an object, found");
  refused("{\"text\": 7}", Code::kCorrupt, "f.jsonl: line 1: 'text': expected a string, found 7");
  refused("{\"texts\": \"x\"}", Code::kCorrupt,
          "f.jsonl: line 1: key 'text' is missing; write one object {\"text\": …} on each line");
  refused("{\"text\": \"" + std::string(1 << 20, 'x') + "\"}", Code::kCorrupt,
          "f.jsonl: line 1: expected at most 1048576 bytes, found 1048588");
}

}  // namespace
}  // namespace latte::judge_texts_test
