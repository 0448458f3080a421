// Regular expressions of schemas, without xgrammar: what they match, and what is refused.
#include "src/grammar/pattern/pattern.h"

#include <gtest/gtest.h>

#include "src/grammar/pattern/pattern_rules.h"

namespace latte::pattern_test {
namespace {

// Whether all of the text matches, or a part of it.
bool Finds(std::string_view regex, std::string_view text, PatternEnds ends = PatternEnds::kSearch) {
  auto pattern = ParsePattern(regex, ends);
  if (!pattern) ADD_FAILURE() << regex << ": " << pattern.error().message;
  return pattern && IsInSet({{*std::move(pattern)}, {}}, text).value();
}

TEST(CharSetTest, RangesJoinAndComplement) {
  CharSet set = {{'c', 'd'}, {'a', 'a'}, {'b', 'b'}, {0xD000, 0xE000}};
  EXPECT_EQ(set.ranges(), (std::vector<CharRange>{{'a', 'd'}, {0xD000, 0xD7FF}, {0xE000, 0xE000}}));
  EXPECT_TRUE(set.Complement().Contains('e'));
  EXPECT_FALSE(set.Complement().Contains('b'));
  EXPECT_TRUE(CharSet::All().Complement().empty());
  EXPECT_EQ(set.Complement().Complement(), set);
  EXPECT_EQ(set.And({{'b', 'z'}}), (CharSet{{'b', 'd'}}));
}

TEST(PatternTest, SearchesAndWholes) {
  EXPECT_TRUE(Finds("b", "abc"));
  EXPECT_FALSE(Finds("b", "abc", PatternEnds::kWhole));
  EXPECT_TRUE(Finds("^a|c$", "xxc"));
  EXPECT_FALSE(Finds("^a|c$", "xcx"));
  EXPECT_TRUE(Finds("^(a|^b)$", "b"));
  EXPECT_TRUE(Finds("^(?:[a-c]{2}|d?)+$", "abd"));
  EXPECT_FALSE(Finds("^(?:[a-c]{2}|d?)+$", "abc"));
  EXPECT_TRUE(Finds("^a{3,}$", "aaaa"));
  EXPECT_FALSE(Finds("^a{3,}$", "aa"));
  EXPECT_TRUE(Finds("^[]$|x", "x"));
  EXPECT_FALSE(Finds("^[]$", ""));
}

TEST(PatternTest, ClassesHoldOnlyWhatAllValidatorsAgreeOn) {
  EXPECT_TRUE(Finds("^\\w$", "_"));
  EXPECT_FALSE(Finds("^\\w$", "é"));
  EXPECT_FALSE(Finds("^\\W$", "é"));
  EXPECT_FALSE(Finds("^[^\\w]$", "é"));
  EXPECT_FALSE(Finds("^[^\\W]$", "é"));
  EXPECT_FALSE(Finds("^\\S$", "\u00a0"));
  EXPECT_FALSE(Finds("^\\s$", "\u00a0"));
  EXPECT_FALSE(Finds("^.$", "\u2028"));
  EXPECT_TRUE(Finds("^[\\s\\S]$", "a"));
}

TEST(PatternTest, WhatNoGrammarCanDoIsRefused) {
  for (const char* regex :
       {"(?!a)b", "(?=a)", "(?<=a)b", "(?<!a)b", "a\\b", "\\Ba", "(a)\\1", "\\p{L}", "(?i)a", "a^b",
        "a$b", "(^a)*", "(a$)+b", "(?<n>a)\\k<n>", "a{1,20000}", "\\Aa\\Z"}) {
    const auto pattern = ParsePattern(regex, PatternEnds::kWhole);
    ASSERT_FALSE(pattern) << regex;
    EXPECT_EQ(pattern.error().code, Code::kUnsupported) << regex << ": " << pattern.error().message;
  }
  for (const char* regex : {"(a", "a)", "[a", "*a", "a**", "a{3,2}", "[z-a]", "\\x1", "\\u{110000}",
                            "a\\", "(?<n", "[a-\\d]"}) {
    const auto pattern = ParsePattern(regex, PatternEnds::kWhole);
    ASSERT_FALSE(pattern) << regex;
    EXPECT_EQ(pattern.error().code, Code::kInvalidArgument)
        << regex << ": " << pattern.error().message;
  }
  EXPECT_FALSE(
      ParsePattern(std::string(1'000, '(') + std::string(1'000, ')'), PatternEnds::kWhole));
}

TEST(PatternTest, SetsHaveABoundedNumberOfStates) {
  RuleSet rules;
  const auto blow_up = [](const char* regex) {
    return ParsePattern(regex, PatternEnds::kWhole).value();
  };
  const auto rule = JsonStringRule({{blow_up(".*a.{60}"), blow_up(".*b.{60}")}, {}}, &rules);
  ASSERT_FALSE(rule);
  EXPECT_EQ(rule.error().code, Code::kUnsupported);
  const auto none = JsonStringRule({{blow_up("a+"), blow_up("b+")}, {}}, &rules);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  EXPECT_TRUE(IsInSet({{blow_up("[ab]+")}, {blow_up("a+")}}, "ab").value());
  EXPECT_FALSE(IsInSet({{blow_up("[ab]+")}, {blow_up("a+")}}, "aa").value());
}

}  // namespace
}  // namespace latte::pattern_test
