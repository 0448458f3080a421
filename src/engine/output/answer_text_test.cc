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
  out.text += text.Flush().text;
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
  EXPECT_EQ(text.Flush().text, "\uFFFD");
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
  EXPECT_EQ(text.Flush().text, "\n");
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

// A chat's answer, with special tokens shown; it ends without one.
Answer Chat(const std::vector<int32_t>& tokens, const std::vector<std::string>& stops,
            bool in_thought = false, std::optional<ToolFormat> calls = std::nullopt,
            size_t min_tokens = 0) {
  AnswerText text(Small(), stops, true, ContentFinder(in_thought, calls));
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const AnswerText::Step step = text.Push(tokens[i], i >= min_tokens);
    out += step.text;
    if (step.stopped) return {out, true};
  }
  const AnswerText::Step rest = text.Flush();
  return {out + rest.text, rest.stopped};
}

Answer Chat(std::string_view text, const std::vector<std::string>& stops, bool in_thought = false,
            std::optional<ToolFormat> calls = std::nullopt) {
  return Chat(Bytes(text), stops, in_thought, calls);
}

TEST(AnswerTextOfAChat, ReasoningHasNoStopStrings) {
  EXPECT_EQ(Chat("END or not?</think>The END.", {"END"}, true),
            (Answer{"END or not?</think>The ", true}));
  EXPECT_EQ(Chat("<think>END</think>The END.", {"END"}), (Answer{"<think>END</think>The ", true}));
  EXPECT_EQ(Chat("\n <think>END</think>END", {"END"}), (Answer{"\n <think>END</think>", true}));
  EXPECT_EQ(Chat("an END", {"END"}), (Answer{"an ", true}));
  EXPECT_EQ(Chat("END and never more", {"END"}, true), (Answer{"END and never more", false}));
  EXPECT_EQ(Chat({261, 'E', 262, 'E', 'x'}, {"E"}), (Answer{"<think>E</think>", true}));
  // A mark later in the answer is content, and so is what follows it.
  EXPECT_EQ(Chat("a <think>END", {"END"}), (Answer{"a <think>", true}));
  EXPECT_EQ(Chat("so</think>a</think>b", {"</think>"}, true), (Answer{"so</think>a", true}));
}

TEST(AnswerTextOfAChat, NoStopStringSpansTheEndOfReasoning) {
  EXPECT_EQ(Chat("EN</think>D", {"END", "EN</think>D", "k>D"}, true),
            (Answer{"EN</think>D", false}));
  EXPECT_EQ(Chat("so</think>\n\nHi\n\n", {"\n\n"}, true), (Answer{"so</think>", true}));
}

TEST(AnswerTextOfAChat, CallsHaveNoStopStrings) {
  const auto glm = ToolFormat::kGlm;
  const std::string call =
      "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>END</arg_value>\n</tool_call>";
  for (const char* stop : {"END", "\n", "<tool_call>", "f", "</arg_value>", "</tool_call>", ">"})
    EXPECT_EQ(Chat("Look:\n" + call, {stop}, false, glm), (Answer{"Look:\n" + call, false}))
        << stop;
  EXPECT_EQ(Chat("an END" + call, {"END"}, false, glm), (Answer{"an ", true}));
  EXPECT_EQ(Chat(call + " the END", {"END"}, false, glm), (Answer{call + " the ", true}));
  EXPECT_EQ(Chat("END" + call + "END", {"END"}, true, glm), (Answer{"END" + call, true}));
  EXPECT_EQ(Chat("E" + call + "ND", {"END"}, false, glm), (Answer{"E" + call + "ND", false}));
  // Without tools, all of it is text.
  EXPECT_EQ(Chat(call, {"END"}), (Answer{call.substr(0, call.find("END")), true}));
}

TEST(AnswerTextOfAChat, CallsOfEveryFormatHaveNoStopStrings) {
  const std::pair<ToolFormat, std::string> table[] = {
      {ToolFormat::kDeepseekV3,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": "
       "\"END\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {ToolFormat::kDeepseekV31,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": "
       "\"END\"}<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>"},
      {ToolFormat::kDeepseekV32,
       "\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" "
       "string=\"true\">END</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
      {ToolFormat::kKimiK2,
       "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
       "{\"a\": \"END\"}<|tool_call_end|><|tool_calls_section_end|>"},
  };
  for (const auto& [format, call] : table)
    for (const char* stop : {"END", "\"", "}", "f", "\n", "_", "｜"}) {
      EXPECT_EQ(Chat("Hi" + call, {stop}, false, format), (Answer{"Hi" + call, false})) << stop;
      EXPECT_EQ(Chat("Hm" + call, {stop}, true, format), (Answer{"Hm" + call, false})) << stop;
      EXPECT_EQ(Chat("x" + std::string(stop) + call, {stop}, false, format), (Answer{"x", true}));
    }
}

TEST(AnswerTextOfAChat, WhatIsNoCallIsContent) {
  const auto glm = ToolFormat::kGlm;
  EXPECT_EQ(Chat("Write <tool_call> there. END", {"END"}, false, glm),
            (Answer{"Write <tool_call> there. ", true}));
  EXPECT_EQ(Chat("<tool_call>END and more", {"END"}, false, glm), (Answer{"<tool_call>", true}));
  EXPECT_EQ(Chat("a <tool_call", {"<tool"}, false, glm), (Answer{"a ", true}));
  EXPECT_EQ(Chat("a\n", {"\n"}, false, glm), (Answer{"a", true}));
  EXPECT_EQ(Chat("\n <thin", {"<"}), (Answer{"\n ", true}));
}

TEST(AnswerTextOfAChat, TheLeastTokensCountAlsoWhereTheTextIsDecidedLater) {
  // "\n" may begin a call; what it is becomes certain with the next token.
  EXPECT_EQ(Chat(Bytes("\nab\nc"), {"\n"}, false, ToolFormat::kGlm, 1), (Answer{"\nab", true}));
  EXPECT_EQ(Chat(Bytes("\nab"), {"\n"}, false, ToolFormat::kGlm, 0), (Answer{"", true}));
}

TEST(AnswerTextOfAChat, HiddenTokensStopInContentOnly) {
  const auto hidden = [](const std::vector<int32_t>& tokens, bool in_thought) {
    AnswerText text(Small(), {"<end>"}, false, ContentFinder(in_thought, ToolFormat::kGlm));
    std::string out;
    for (const int32_t token : tokens) {
      const AnswerText::Step step = text.Push(token);
      out += step.text;
      if (step.stopped) return Answer{out, true};
    }
    return Answer{out + text.Flush().text, false};
  };
  EXPECT_EQ(hidden({'a', 260, 'b'}, false), (Answer{"a", true}));
  EXPECT_EQ(hidden({'a', '\n', 260, 'b'}, false), (Answer{"a\n", true}));
  EXPECT_EQ(hidden({'a', 260, 'b', 262, 'c', 260, 'd'}, true), (Answer{"ab</think>c", true}));
}

// Where no stop string occurs in the content, all text comes, in whole characters.
RC_GTEST_PROP(AnswerTextOfAChat, TextOfAllKindsIsKept, ()) {
  const auto part = rc::gen::element<std::string>(
      "a", "é", "<think>", "</think>", "<tool_call>", "f", "\n", "<arg_key>", "</arg_key>",
      "<arg_value>", "</arg_value>", "</tool_call>", "<", "｜");
  std::string text;
  for (const std::string& one : *rc::gen::container<std::vector<std::string>>(part)) text += one;
  const bool in_thought = *rc::gen::arbitrary<bool>();
  const auto calls = *rc::gen::element<std::optional<ToolFormat>>(std::nullopt, ToolFormat::kGlm);
  RC_ASSERT(Chat(text, {"never"}, in_thought, calls) == (Answer{text, false}));
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
