#include "src/engine/output/answer_text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "src/base/json_out.h"
#include "src/text/unicode/unicode.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::answer_text_test {
namespace {

// Byte b has id b; 256: "ab", 257: "ba", 258: "abab", 259: "é"; special: 260 "<end>", 261
// "<think>", 262 "</think>"; 263 "<user>" is added, but not special.
const Tokenizer& Small() {
  static const Tokenizer tokenizer = [] {
    JsonOut file = SmallTokenizer({"a b", "b a", "ab ab", "Ã ©"});
    for (const char* special : {"<end>", "<think>", "</think>"}) AddToken(&file, special);
    AddToken(&file, "<user>", {{"special", false}});
    return Tokenizer::FromJson(Dump(file)).value();
  }();
  return tokenizer;
}

std::vector<int32_t> Bytes(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

struct Answer {
  std::string text;
  bool stopped = false;
  bool operator==(const Answer&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Answer& answer) {
  return out << '"' << answer.text << "\" stopped: " << answer.stopped;
}

// Stop strings do not count in the text of the first `min_tokens` tokens.
Answer Stream(const std::vector<int32_t>& tokens, const std::vector<std::string>& stops,
              size_t min_tokens = 0, bool keep_special = true) {
  AnswerText text(Small(), stops, keep_special);
  Answer out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const AnswerText::Step step = text.Push(tokens[i], i >= min_tokens);
    EXPECT_EQ(ValidUtf8Prefix(step.text), step.text.size());
    out.text += step.text;
    EXPECT_EQ(step.stopped, std::find(stops.begin(), stops.end(), step.stop_string) != stops.end());
    if (step.stopped) return {out.text, true};
  }
  out.text += text.Flush();
  return out;
}

// The same by looking at every end in turn. `from`: an occurrence ends after it.
Answer Naive(const std::string& text, const std::vector<std::string>& stops, size_t from = 0) {
  for (size_t end = from + 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops)
      if (std::string_view(text).substr(0, end).ends_with(stop))
        longest = std::max(longest, stop.size());
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(AnswerText, WithoutStopStringsTextComesAtOnce) {
  AnswerText text(Small(), {}, true);
  EXPECT_EQ(text.Push('a').text, "a");
  EXPECT_EQ(text.Push(258).text, "abab");
  EXPECT_EQ(text.Push(0xc3).text, "");
  EXPECT_EQ(text.Push(0xa9).text, "é");
  EXPECT_EQ(text.Push(0xc3).text, "");
  EXPECT_EQ(text.Flush(), "\uFFFD");
}

TEST(AnswerText, HoldsBackOnlyWhatMayBecomeAStopString) {
  AnswerText text(Small(), {"\n\nQ:"}, true);
  EXPECT_EQ(text.Push('x').text, "x");
  EXPECT_EQ(text.Push('\n').text, "");
  EXPECT_EQ(text.Push('\n').text, "");
  EXPECT_EQ(text.Push('\n').text, "\n");
  EXPECT_EQ(text.Push('Q').text, "");
  EXPECT_EQ(text.Push('q').text, "\n\nQq");
  EXPECT_EQ(text.Push('\n').text, "");
  EXPECT_EQ(text.Flush(), "\n");
}

TEST(AnswerText, StopStringsAreFoundAcrossAndInsideTokens) {
  EXPECT_EQ(Stream({'x', 256, 258, 'y'}, {"baba"}), (Answer{"xa", true}));
  EXPECT_EQ(Stream({'x', 258, 'y'}, {"ba"}), (Answer{"xa", true}));
  EXPECT_EQ(Stream(Bytes("über é!"), {"é"}), (Answer{"über ", true}));
  // An occurrence that begins inside one that failed.
  EXPECT_EQ(Stream(Bytes("aabaaabaaac"), {"aabaaac"}), (Answer{"aaba", true}));
}

TEST(AnswerText, TheEarliestEndWinsThenTheEarliestStart) {
  EXPECT_EQ(Stream(Bytes("xabcd"), {"abcd", "bc"}), (Answer{"xa", true}));
  EXPECT_EQ(Stream(Bytes("xabcd"), {"c", "abc", "bc"}), (Answer{"x", true}));
}

// The stop string that ends the tokens; empty: none.
std::string StopOf(const std::vector<int32_t>& tokens, const std::vector<std::string>& stops,
                   bool keep_special) {
  AnswerText text(Small(), stops, keep_special);
  for (const int32_t token : tokens)
    if (const AnswerText::Step step = text.Push(token); step.stopped) return step.stop_string;
  return "";
}

TEST(AnswerText, TellsWhichStopStringEndedIt) {
  for (const bool keep_special : {false, true}) {
    EXPECT_EQ(StopOf(Bytes("xabcd"), {"abcd", "bc"}, keep_special), "bc");
    EXPECT_EQ(StopOf(Bytes("xabcd"), {"c", "abc", "bc"}, keep_special), "abc");
    EXPECT_EQ(StopOf(Bytes("xabcd"), {"z"}, keep_special), "");
    EXPECT_EQ(StopOf({'x', 260}, {"a", "<end>"}, keep_special), "<end>");
    EXPECT_EQ(StopOf({'x', 260}, {">", "end>", "<end>"}, keep_special), "<end>");
  }
}

TEST(AnswerText, BeforeTheLeastTokensStopStringsAreText) {
  EXPECT_EQ(Stream(Bytes("aXaXa"), {"X"}, 2), (Answer{"aXa", true}));
  // It began before and ends after.
  EXPECT_EQ(Stream(Bytes("aXYb"), {"XY"}, 2), (Answer{"a", true}));
}

Answer Shown(const std::vector<int32_t>& tokens, const std::vector<std::string>& stops = {},
             size_t min_tokens = 0) {
  return Stream(tokens, stops, min_tokens, false);
}

TEST(AnswerText, SpecialTokensAreTextOnlyWhereTheyAreKept) {
  EXPECT_EQ(Shown({'x', 260, 'y', 260}), (Answer{"xy", false}));
  EXPECT_EQ(Stream({'x', 260, 'y', 260}, {}), (Answer{"x<end>y<end>", false}));
  EXPECT_EQ(Shown({260}), (Answer{"", false}));
  EXPECT_EQ(Shown({'x', 263}), (Answer{"x<user>", false}));  // not special
  // A code point that a special token interrupts is whole again without it.
  EXPECT_EQ(Shown({0xc3, 260, 0xa9}), (Answer{"é", false}));
}

TEST(AnswerText, MarksOfReasoningAreAlwaysText) {
  EXPECT_EQ(Shown({261, 'x', 262, 'y', 260}), (Answer{"<think>x</think>y", false}));
}

TEST(AnswerText, StopStringsMayNameTokensThatAreNotShown) {
  EXPECT_EQ(Shown({'x', 260, 'y'}, {"<end>"}), (Answer{"x", true}));
  EXPECT_EQ(Shown({'x', 260, '\n', 'y'}, {"<end>\n"}), (Answer{"x", true}));
  EXPECT_EQ(Shown({'x', '\n', 260, 'y'}, {"\n<end>"}), (Answer{"x", true}));
  EXPECT_EQ(Shown({'x', 260, 'y'}, {"end"}), (Answer{"x", true}));  // inside the token's text
  EXPECT_EQ(Shown({'x', 'a', 260, 260, 'b'}, {"a<end><end>b"}), (Answer{"x", true}));
  EXPECT_EQ(Shown({'x', '\n', 260, 'y'}, {"\n<end>z"}), (Answer{"x\ny", false}));
}

TEST(AnswerText, WhatIsShownHasNoStopStringEvenAroundTokensThatAreNot) {
  EXPECT_EQ(Shown({'x', 'a', 260, 'b', 'y'}, {"ab"}), (Answer{"x", true}));
  EXPECT_EQ(Shown({'x', 'a', 260, 'c'}, {"ab"}), (Answer{"xac", false}));
  EXPECT_EQ(Shown({'x', 'a', 260}, {"ab"}), (Answer{"xa", false}));
}

TEST(AnswerText, BeforeTheLeastTokensHiddenStopStringsCountAsLittle) {
  EXPECT_EQ(Shown({260, 'x', 260, 'y'}, {"<end>"}, 2), (Answer{"x", true}));
}

// Text of few letters, so that stop strings occur, overlap and nest.
rc::Gen<std::string> SomeText(size_t most) {
  const auto letters = rc::gen::element<std::string>("a", "b", "é", "è");
  return rc::gen::map(
      rc::gen::mapcat(
          rc::gen::inRange<size_t>(1, most),
          [=](size_t n) { return rc::gen::container<std::vector<std::string>>(n, letters); }),
      [](const std::vector<std::string>& parts) {
        std::string text;
        for (const std::string& part : parts) text += part;
        return text;
      });
}

// A text as tokens: at every place one of those that fit.
std::vector<int32_t> AnySplit(const std::string& text) {
  std::vector<int32_t> ids;
  for (size_t at = 0; at < text.size();) {
    std::vector<int32_t> fitting = {static_cast<uint8_t>(text[at])};
    for (int32_t id = 256; id < 260; ++id)
      if (std::string_view(text).substr(at).starts_with(Small().TokenBytes(id)))
        fitting.push_back(id);
    ids.push_back(*rc::gen::elementOf(fitting));
    at += Small().TokenBytes(ids.back()).size();
  }
  return ids;
}

RC_GTEST_PROP(AnswerText, EverySplitGivesTheTextThatASearchFinds, ()) {
  const std::string text = *SomeText(60);
  const auto stops =
      *rc::gen::container<std::vector<std::string>>(*rc::gen::inRange<size_t>(1, 5), SomeText(5));
  RC_ASSERT(Stream(AnySplit(text), stops) == Naive(text, stops));
}

RC_GTEST_PROP(AnswerText, HiddenTokensChangeNothingInWhatIsShown, ()) {
  const std::string text = *SomeText(60);
  const auto stops =
      *rc::gen::container<std::vector<std::string>>(*rc::gen::inRange<size_t>(0, 4), SomeText(5));
  std::vector<int32_t> ids;
  for (const int32_t id : AnySplit(text)) {
    if (*rc::gen::inRange(0, 3) == 0) ids.push_back(260);
    ids.push_back(id);
  }
  RC_ASSERT(Shown(ids, stops) == Naive(text, stops));
}

RC_GTEST_PROP(AnswerText, TheLeastTokensMoveTheFirstEnd, ()) {
  const std::string text = *SomeText(30);
  const std::vector<std::string> stops = {*SomeText(4), *SomeText(4)};
  const std::vector<int32_t> ids = AnySplit(text);
  const size_t min_tokens = *rc::gen::inRange<size_t>(0, ids.size());
  StreamDecoder decoder(Small());
  size_t from = 0;
  for (size_t i = 0; i < min_tokens; ++i) from += decoder.Push(ids[i]).size();
  RC_ASSERT(Stream(ids, stops, min_tokens) == Naive(text, stops, from));
}

}  // namespace
}  // namespace latte::answer_text_test
