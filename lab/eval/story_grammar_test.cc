#include "lab/eval/story_grammar.h"

#include <set>

#include <gtest/gtest.h>

#include "src/base/file.h"

namespace latte::story_grammar_test {
namespace {

const std::string kSource = LATTE_SOURCE_DIR;

StoryGrammar Stories() {
  auto grammar = StoryGrammar::Load(kSource + "/models/tiny/story_grammar.json");
  EXPECT_TRUE(grammar) << ToString(grammar.error());
  return std::move(*grammar);
}

// Two people with different names who meet at a spot of the place.
constexpr std::string_view kMeeting = R"({
  "rules": {"story": ["<who> met {b.name} {place.at}[, {spot.where}|].[| {a.He} [smiled[| again]|ran].]"],
            "who": ["{a.name}", "the {a.kind} {a.name}"]},
  "tables": {"people": {"attributes": ["name", "kind", "He"],
                        "rows": [["Ann", "cat", "She"], ["Bob", "dog", "He"], ["Bob", "cat", "He"]]},
             "place": {"attributes": ["key", "at"], "rows": [["p", "in the park"], ["f", "on the farm"]]},
             "spot": {"attributes": ["key", "where"],
                      "rows": [["p", "by the gate"], ["f", "by the barn"], ["f", "by the gate"]]}},
  "variables": {"a": "people", "b": "people", "place": "place", "spot": "spot"},
  "distinct": [["a", "b", "name"]],
  "same": [["place", "key", "spot", "key"]]})";

StoryGrammar Meeting() {
  auto grammar = StoryGrammar::FromJson(kMeeting, "meeting");
  EXPECT_TRUE(grammar) << ToString(grammar.error());
  return std::move(*grammar);
}

// tools/tiny/export_grammar.py writes stories and errors at known places; no parser decides.
TEST(StoryGrammar, StoriesAreAcceptedAndErrorsAreFoundWhereTheyBegin) {
  const StoryGrammar grammar = Stories();
  const auto text = ReadFile(kSource + "/tests/data/story_cases.json", 1 << 20);
  ASSERT_TRUE(text) << ToString(text.error());
  const auto cases = Json::Parse(*text, "story_cases.json");
  ASSERT_TRUE(cases) << ToString(cases.error());
  ASSERT_EQ(cases->size(), 310u);
  for (size_t i = 0; i < cases->size(); ++i) {
    const Json one = cases->At(i);
    const StoryVerdict verdict = grammar.Parse(*one.GetString("text"));
    EXPECT_EQ(verdict.accepted, *one.GetBoolOr("accepted", false)) << i << ": " << verdict.why;
    EXPECT_EQ(static_cast<int64_t>(verdict.at), *one.GetIntOr("at", 0)) << i;
    EXPECT_EQ(verdict.why.find("not judged"), std::string::npos) << i;
    EXPECT_EQ(verdict.accepted, i % 5 == 0) << i;  // a story, then four with an error
  }
}

TEST(StoryGrammar, WhatItWritesItAccepts) {
  const StoryGrammar grammar = Stories();
  std::set<std::string> texts;
  for (uint64_t i = 0; i < 300; ++i) {
    Random random(1, i);
    const auto text = grammar.Generate(random);
    ASSERT_TRUE(text) << ToString(text.error());
    const StoryVerdict verdict = grammar.Parse(*text);
    EXPECT_TRUE(verdict.accepted) << *text << "\n" << verdict.why;
    EXPECT_FALSE(grammar.Parse(*text + " The end.").accepted);
    EXPECT_FALSE(grammar.Parse(text->substr(0, text->size() - 1)).accepted);
    texts.insert(*text);
  }
  EXPECT_EQ(texts.size(), 300u);
}

TEST(StoryGrammar, TheSameSeedWritesTheSameTextOnEveryMachine) {
  Random random(1, 2);
  EXPECT_EQ(
      *Stories().Generate(random),
      "A long time ago, in a cozy house by the hill, there lived a gentle frog named Rosa. But "
      "she had no one to play with, so she was upset. One sunny morning, she walked to the "
      "market and saw Hazel the goat. Hazel was sitting beside the bread cart with a silver "
      "whistle. \"Good day, my name is Rosa,\" said Rosa. \"Hello, Rosa. I am Hazel,\" said "
      "Hazel. \"Do you want to play catch?\" asked Rosa. \"I would love to!\" said Hazel. So "
      "they played catch there all day. Rosa was full of joy. Hazel even gave her the whistle. "
      "That night, Rosa went to bed full of joy and dreamed of dancing in the rain.");
  Random meeting(3);
  EXPECT_EQ(*Meeting().Generate(meeting), "the dog Bob met Ann on the farm, by the gate. He ran.");
}

TEST(StoryGrammar, VariablesAgreeAndConstraintsHold) {
  const StoryGrammar grammar = Meeting();
  for (const std::string_view good :
       {"Ann met Bob in the park.", "the cat Bob met Ann on the farm, by the gate.",
        "the dog Bob met Ann in the park, by the gate. He smiled again.",
        "Ann met Bob in the park. She ran."})
    EXPECT_TRUE(grammar.Parse(good).accepted) << good << ": " << grammar.Parse(good).why;
  for (const std::string_view bad :
       {"", "Ann met Ann in the park.", "the dog Ann met Bob in the park.",
        "Bob met Ann in the park, by the barn.", "Ann met Bob in the park. He ran.",
        "Ann met Bob in the park. She ran again.", "Ann met Bob in the park",
        "ann met Bob in the park."})
    EXPECT_FALSE(grammar.Parse(bad).accepted) << bad;
}

TEST(StoryGrammar, WritesEveryTextOfASmallLanguage) {
  const StoryGrammar grammar = Meeting();
  std::set<std::string> texts;
  for (uint64_t i = 0; i < 4000; ++i) {
    Random random(9, i);
    const auto text = grammar.Generate(random);
    ASSERT_TRUE(text && grammar.Parse(*text).accepted);
    texts.insert(*text);
  }
  // Ann, "the cat Ann", Bob, "the dog Bob" or "the cat Bob"; 5 places with or without a spot; 4
  // ends.
  EXPECT_EQ(texts.size(), 5u * 5u * 4u);
}

TEST(StoryGrammar, ARefusalSaysWhereAndWhatWasExpected) {
  const StoryVerdict verdict = Meeting().Parse("Bob met Ann at home.");
  EXPECT_EQ(verdict.at, 12u);
  EXPECT_EQ(verdict.why,
            "at byte 12 found 'at home.', expected one of 'in the park', 'on the farm'");
  EXPECT_EQ(Meeting().Parse("Ann met Bob in the park. \x01\xff").why.find('\x01'),
            std::string::npos);
}

TEST(StoryGrammar, ValuesAreTheDifferentOnes) {
  EXPECT_EQ(*Meeting().Values("a", "name"), (std::vector<std::string>{"Ann", "Bob"}));
  EXPECT_EQ(Stories().Values("hero", "name")->size(), 32u);
  EXPECT_NE(Meeting().Values("c", "name").error().message.find("'c'"), std::string::npos);
  EXPECT_NE(Meeting().Values("a", "age").error().message.find("'age'"), std::string::npos);
}

// A grammar of one rule, with a variable v.
std::string OneRule(const std::string& alternative) {
  return R"({"rules": {"story": [")" + alternative + R"("], "x": ["y"]},
             "tables": {"t": {"attributes": ["w"], "rows": [["a"], ["b"]]}},
             "variables": {"v": "t", "u": "t"}, "distinct": [], "same": []})";
}

TEST(StoryGrammar, MalformedFilesAreRefusedWithThePlace) {
  const auto refused = [](const std::string& json, const std::string& word) {
    const auto grammar = StoryGrammar::FromJson(json, "file.json");
    ASSERT_FALSE(grammar) << json;
    EXPECT_EQ(grammar.error().code, Code::kCorrupt);
    EXPECT_NE(grammar.error().message.find("file.json"), std::string::npos);
    EXPECT_NE(grammar.error().message.find(word), std::string::npos) << grammar.error().message;
  };
  ASSERT_TRUE(StoryGrammar::FromJson(OneRule("[a|<x>]{v.w}"), "file.json"));
  refused("{", "JSON");
  refused("[]", "object");
  for (const std::string rule : {"a [b", "a]", "a|b", "{v.w", "<x", "a}b", "[a>]"})
    refused(OneRule(rule), "column");
  refused(OneRule("{w}"), "{variable.attribute}");
  refused(OneRule("{z.w}"), "'z'");
  refused(OneRule("{v.z}"), "'z'");
  refused(OneRule("<z>"), "'<z>'");
  refused(OneRule(std::string(40, '[') + std::string(40, ']')), "fewer choices");
  const auto with = [](std::string from, const std::string& to) {
    std::string json = OneRule("{v.w}");
    json.replace(json.find(from), from.size(), to);
    return json;
  };
  refused(with("story", "tale"), "'story'");
  refused(with(R"(["y"])", "[]"), "rules.x");
  refused(with(R"(["y"])", "7"), "rules.x");
  refused(with(R"(["a"])", "[]"), "t.rows.0");
  refused(with(R"(["b"])", R"(["b","c"])"), "t.rows.1");
  refused(with(R"([["a"], ["b"]])", "[]"), "t.rows");
  refused(with(R"("v": "t")", R"("v": "q")"), "'q'");
  refused(with(R"("same": [])", R"("same": [["v","w","u"]])"), "4 strings");
  refused(with(R"("distinct": [])", R"("distinct": [["v","q","w"]])"), "'q'");
  refused(with(R"(, "same": [])", ""), "'same'");
}

TEST(StoryGrammar, HostileGrammarsEndWithAnError) {
  for (const std::string rule : {"<story>", "<story><story>", "a<story>", "[<story>|<story>]b"}) {
    const auto grammar = StoryGrammar::FromJson(OneRule(rule), "file.json");
    ASSERT_TRUE(grammar);
    Random random(1);
    const auto text = grammar->Generate(random);
    ASSERT_FALSE(text) << rule;
    EXPECT_NE(text.error().message.find("leads back"), std::string::npos);
    EXPECT_FALSE(grammar->Parse(std::string(5000, 'a')).accepted);
  }
  const std::string unfit = OneRule("{v.w}{u.w}");
  std::string json = unfit;
  json.replace(json.find(R"("distinct": [])"), 14, R"("distinct": [["v","u","w"]])");
  json.replace(json.find(R"(["b"])"), 5, R"(["a"])");
  const auto grammar = StoryGrammar::FromJson(json, "file.json");
  ASSERT_TRUE(grammar);
  Random random(1);
  EXPECT_NE(grammar->Generate(random).error().message.find("'u'"), std::string::npos);
}

TEST(StoryGrammar, RefusalsCountBytesAndAreShort) {
  EXPECT_EQ(StoryGrammar::FromJson(OneRule("é[a|b]"), "file.json")->Parse("éc").at, 2u);
  const auto grammar = StoryGrammar::FromJson(OneRule(std::string(3000, 'x')), "file.json");
  EXPECT_LT(grammar->Parse("y").why.size(), 200u) << grammar->Parse("y").why;
}

TEST(StoryGrammar, AnAbandonedBranchLeavesNoVariableBound) {
  const auto grammar = StoryGrammar::FromJson(OneRule("[{v.w}x|a{v.w}]{v.w}"), "file.json");
  ASSERT_TRUE(grammar);
  EXPECT_TRUE(grammar->Parse("abb").accepted);
  EXPECT_FALSE(grammar->Parse("aba").accepted);
}

TEST(StoryGrammar, AnAmbiguousTextIsRefusedAfterABoundedAmountOfWork) {
  std::string rule;
  for (int i = 0; i < 60; ++i) rule += "[a|aa]";
  const auto grammar = StoryGrammar::FromJson(OneRule(rule), "file.json");
  ASSERT_TRUE(grammar);
  EXPECT_TRUE(grammar->Parse(std::string(60, 'a')).accepted);
  const StoryVerdict verdict =
      grammar->Parse(std::string(90, 'a') + "b");  // about 2^58 derivations
  EXPECT_FALSE(verdict.accepted);
  EXPECT_NE(verdict.why.find("not judged"), std::string::npos) << verdict.why;
}

}  // namespace
}  // namespace latte::story_grammar_test
