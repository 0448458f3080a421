#include "src/text/unicode/regex.h"

#include <gtest/gtest.h>

#include "src/base/limits/cpu_time.h"
#include "src/text/unicode/regex_onig_syntax.h"

namespace latte::regex_test {
namespace {

// All matches of an Oniguruma pattern, in both engines of PCRE2.
std::vector<std::string> Matches(const std::string& pattern, std::string_view text) {
  std::vector<std::string> rows[2];
  for (const bool jit : {false, true}) {
    const auto translated = TranslatePattern(pattern);
    if (!translated) return {translated.error().message};
    const auto regex = Regex::Compile(*translated, {.jit = jit});
    if (!regex) return {regex.error().message};
    RegexMatcher matcher(*regex);
    for (size_t from = 0; from < text.size();) {
      const auto match = matcher.Find(text, from);
      if (!match) return {match.error().message};
      if (!match->found) break;
      rows[jit].emplace_back(text.substr(match->begin, match->end - match->begin));
      from = match->end;
    }
  }
  EXPECT_EQ(rows[0], rows[1]);
  return rows[1];
}

using Rows = std::vector<std::string>;

TEST(RegexDialect, WhiteSpaceLeavesOutTheMongolianVowelSeparator) {
  EXPECT_EQ(Matches(R"(\s+)", "a \u0085\u3000b\u180E\u200Bc"), (Rows{" \u0085\u3000"}));
  EXPECT_EQ(Matches(R"([^\s]+)", "a\u180E b"), (Rows{"a\u180E", "b"}));
}

TEST(RegexDialect, CategoriesKnowUnicode16) {
  EXPECT_EQ(Matches(R"(\p{L}+)", "\U00031350 \u1C89\U0002EBF0"),
            (Rows{"\U00031350", "\u1C89\U0002EBF0"}));
  EXPECT_EQ(Matches(R"([^\p{L}]+)", "\U00031350-"), (Rows{"-"}));
  EXPECT_EQ(Matches(R"(\P{L}+)", "\U00031350-"), (Rows{"-"}));
  EXPECT_EQ(Matches(R"(\p{Lu}+)", "\u1C89\u1C8A"), (Rows{"\u1C89"}));
  EXPECT_EQ(Matches(R"(\p{N})", "\U00010D40"), (Rows{"\U00010D40"}));
  EXPECT_EQ(Matches(R"(\p{S}\p{P})", "\U0001FAE9\u1B4E"), (Rows{"\U0001FAE9\u1B4E"}));
  EXPECT_EQ(Matches(R"(\p{M})", "\u0897"), (Rows{"\u0897"}));
}

TEST(RegexDialect, ScriptsAreNotScriptExtensions) {
  EXPECT_EQ(Matches(R"(\p{Han}+)", "中\u3001文\U00031350"), (Rows{"中", "文\U00031350"}));
}

TEST(RegexDialect, SetIntersectionBecomesALookahead) {
  EXPECT_EQ(Matches(R"([\p{Lo}a-c&&[^\p{Han}]]+)", "ab中가d"), (Rows{"ab", "가"}));
  EXPECT_EQ(Matches(R"([a-z&&[b-d]]+)", "abcde"), (Rows{"bcd"}));
}

TEST(RegexDialect, LineAnchorsSeeLines) {
  EXPECT_EQ(Matches(R"(^.)", "ab\ncd"), (Rows{"a", "c"}));
  EXPECT_EQ(Matches(R"(.$)", "ab\ncd"), (Rows{"b", "d"}));
}

TEST(RegexDialect, WhatMeansSomethingElseIsRefusedByName) {
  const std::pair<const char*, const char*> rows[] = {
      {R"(\w+)", "the escape \\w"},
      {R"(\b)", "the escape \\b"},
      {R"(\h)", "the escape \\h"},
      {R"((a)\1)", "the escape \\1"},
      {R"(\K)", "the escape \\K"},
      {R"(\p{C})", "the property 'C'"},
      {R"(\p{Alphabetic})", "the property 'Alphabetic'"},
      {R"(\pL)", "\\p without {name}"},
      {R"([[:alpha:]])", "a set inside a set"},
      {R"([a[bc]])", "a set inside a set"},
      {R"([\P{L}])", "a negated set inside a set"},
      {R"([\S])", "a negated set inside a set"},
      {R"([^a&&[b]])", "set intersection"},
      {R"([a&&b])", "set intersection"},
      {R"([])", "empty set"},
      {R"([z-a])", "a range whose end"},
      {R"([\s-a])", "a hyphen between sets"},
      {R"([a)", "never closed"},
      {R"(a{2}?)", "two quantifiers"},
      {R"(a{2,3}+)", "two quantifiers"},
      {R"(a**)", "two quantifiers"},
      {R"(*a)", "nothing before it"},
      {R"(a{)", "begins no interval"},
      {R"((?<n>a))", "this kind of group"},
      {R"((?#x))", "this kind of group"},
      {R"((*VERB))", "this kind of group"},
      {R"(a(?i)b)", "this kind of group"},
      {R"((?m:.))", "this kind of group"},
      {R"(\xff)", "no code point"},
      {R"(\x{110000})", "no code point"},
      {R"(\ud800)", "no code point"},
      {R"(\)", "a backslash at the end"},
      {"\xff", "not UTF-8"},
  };
  for (const auto& [pattern, found] : rows) {
    const auto result = TranslatePattern(pattern);
    ASSERT_FALSE(result) << pattern;
    EXPECT_EQ(result.error().code, Code::kUnsupported) << pattern;
    EXPECT_NE(result.error().message.find(found), std::string::npos) << result.error().message;
  }
}

TEST(Regex, WhatDoesNotCompileIsAnError) {
  for (const std::string& pattern :
       {std::string("("), std::string("a)"), std::string("(?<=a+)b"), std::string("a{70000}"),
        std::string(5000, '(') + std::string(5000, ')')}) {
    const auto regex = Regex::Compile(pattern);
    ASSERT_FALSE(regex);
    EXPECT_EQ(regex.error().code, Code::kUnsupported);
  }
}

TEST(Regex, ExponentialPatternsHitTheLimitInsteadOfHanging) {
  const std::string text = std::string(64, 'a') + "b";
  for (const bool jit : {false, true}) {
    const auto regex = Regex::Compile("(?:a+)+$", {.jit = jit});
    ASSERT_TRUE(regex);
    RegexMatcher matcher(*regex);
    const auto match = matcher.Find(text, 0);
    ASSERT_FALSE(match) << "jit " << jit;
    EXPECT_EQ(match.error().code, Code::kInvalidArgument);
    EXPECT_NE(match.error().message.find("(?:a+)+$"), std::string::npos);
  }
}

TEST(Regex, DeepBacktrackingHasRoomOrIsAnError) {
  // Each iteration of the group leaves a backtracking point; all of them exceed the machine stack.
  const std::string text(200'000, 'a');
  for (const bool jit : {false, true}) {
    const auto regex = Regex::Compile("(?:a|ab)+c|a", {.jit = jit});
    ASSERT_TRUE(regex);
    RegexMatcher matcher(*regex);
    const auto match = matcher.Find(text, 0);
    if (match) {
      EXPECT_EQ(match->end, 1u);
    } else {
      EXPECT_EQ(match.error().code, Code::kInvalidArgument);
    }
  }
}

TEST(Regex, WorkInTheSquareOfTheTextEndsAtTheBudget) {
  // Without the budget, each of these takes minutes to hours.
  const std::string text(1 << 20, 'a');
  for (const char* pattern : {"(?=a*b)a", "a(?!.*b)", "a(?=[^c]*c)"}) {
    for (const bool jit : {false, true}) {
      const auto regex = Regex::Compile(pattern, {.jit = jit});
      ASSERT_TRUE(regex);
      RegexMatcher matcher(*regex, {.seconds = 0.2, .bytes_per_second = 1e12});
      Result<RegexMatch> match = matcher.Find(text, 0);
      while (match && match->found && match->end < text.size())
        match = matcher.Find(text, match->end);
      ASSERT_FALSE(match) << pattern;
      EXPECT_EQ(match.error().code, Code::kInvalidArgument);
      EXPECT_NE(match.error().message.find(pattern), std::string::npos);
    }
  }
}

TEST(Regex, AMatchFarAwayIsFoundWhereverItBegins) {
  // Checks the places where one search ends and the next begins, with code points of 1 to 4 bytes.
  for (const std::string_view unit : {"x", "\u00e9", "\u65e5", "\U0001F642"}) {
    std::string text;
    while (text.size() < 6000) text += unit;
    for (size_t at = 0; at <= text.size(); at += at < 400 ? unit.size() : 97 * unit.size()) {
      const std::string subject = text.substr(0, at) + "!" + text.substr(at);
      const auto regex = Regex::Compile("(?<!y)!(?=.|$)");
      ASSERT_TRUE(regex);
      RegexMatcher matcher(*regex);
      const auto match = matcher.Find(subject, 0);
      ASSERT_TRUE(match && match->found) << at;
      EXPECT_EQ(match->begin, at);
      const auto next = matcher.Find(subject, at + 1);
      ASSERT_TRUE(next);
      EXPECT_FALSE(next->found);
    }
  }
}

TEST(Regex, TrailingWhiteSpaceTakesLinearTime) {
  // The run is not at the end, so the match fails at every place of it. A plain \s+$ reads the
  // whole run each time.
  const std::string text = "x" + std::string(1 << 20, ' ') + "\x01" + std::string(3, ' ');
  const double begin = ThreadCpuSeconds();
  EXPECT_EQ(Matches(R"(\s+$)", text), (Rows{"   "}));
  EXPECT_LT(ThreadCpuSeconds() - begin, 20);
}

}  // namespace
}  // namespace latte::regex_test
