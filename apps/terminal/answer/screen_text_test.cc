#include "apps/terminal/answer/screen_text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/terminal/screen.h"

namespace latte::screen_text_test {
namespace {

std::string Shown(const std::vector<std::string>& pieces, ScreenStyle style, bool in_thought) {
  UseUtf8();
  ScreenText text(style);
  AnswerSplitter splitter(in_thought);
  std::string out;
  for (const std::string& piece : pieces) out += text.Add(splitter.Push(piece));
  out += text.Add(splitter.Finish());
  return out + text.Finish();
}

// The text whole, and cut into two at every byte, and byte by byte: all the same.
std::string Shown(const std::string& whole, ScreenStyle style = {}, bool in_thought = false) {
  const std::string out = Shown(std::vector{whole}, style, in_thought);
  for (size_t cut = 1; cut < whole.size(); ++cut)
    EXPECT_EQ(Shown({whole.substr(0, cut), whole.substr(cut)}, style, in_thought), out) << cut;
  std::vector<std::string> bytes;
  for (const char byte : whole) bytes.emplace_back(1, byte);
  EXPECT_EQ(Shown(bytes, style, in_thought), out);
  return out;
}

TEST(ScreenText, ControlsBecomePictures) {
  EXPECT_EQ(Shown("a\x1b[31mb\x07\r\x7f c\n\td"), "a␛[31mb␇␍␡ c\n        d");
  EXPECT_EQ(Shown(std::string("a\0b", 3)), "a␀b");
}

TEST(ScreenText, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(Shown("a\xff\xc3(\xe2\x82z\xc0\xaf\xed\xa0\x80 \xf4\x90\x80\x80."),
            "a��(�z����� ����.");
  EXPECT_EQ(Shown("end\xf0\x9f"), "end�");
  EXPECT_EQ(Shown("\xc2\x9b[2J"), "�[2J");       // C1: the same as ESC [
  EXPECT_EQ(Shown("a\u202eb\u2066c"), "a�b�c");  // the direction of text
  EXPECT_EQ(Shown("Grüße, 你好 🙂"), "Grüße, 你好 🙂");
}

TEST(ScreenText, WordsStayWhole) {
  EXPECT_EQ(Shown("one two three four", {.columns = 9}), "one two\nthree\nfour");
  EXPECT_EQ(Shown("one two", {.columns = 7}), "one two");
  EXPECT_EQ(Shown("a  b", {.columns = 3}), "a\nb");
  EXPECT_EQ(Shown("x abcdefghijkl y", {.columns = 5}), "x\nabcde\nfghij\nkl y");
  EXPECT_EQ(Shown("  indented\n\ntext", {.columns = 20}), "  indented\n\ntext");
}

TEST(ScreenText, WidthIsCountedInColumns) {
  EXPECT_EQ(Shown("你好世界", {.columns = 5}), "你好\n世界");
  EXPECT_EQ(Shown("éé éé", {.columns = 5}), "éé éé");
}

TEST(ScreenText, CodeIsNotWrapped) {
  EXPECT_EQ(Shown("```c\nint a = 1;  // x\n```\nint a = 1;", {.columns = 6}),
            "```c\nint a = 1;  // x\n```\nint a\n= 1;");
}

TEST(ScreenText, ReasoningIsDim) {
  const ScreenStyle dims{.dims = true};
  EXPECT_EQ(Shown("<think>\nhm </think>\nyes </think>", dims),
            "\x1b[2m<think>\nhm </think>\x1b[0m\nyes </think>");
  EXPECT_EQ(Shown("\n<thin> no", dims), "\n<thin> no");
  EXPECT_EQ(Shown("hm</thin", dims, true), "\x1b[2mhm</thin\x1b[0m");
  EXPECT_EQ(Shown("hm</think>a", dims, true), "\x1b[2mhm</think>\x1b[0ma");
  EXPECT_EQ(Shown("<think>a</think>b"), "<think>a</think>b");
}

TEST(ScreenText, MarkdownIsInked) {
  const ScreenStyle inked{.markdown = true};
  EXPECT_EQ(Shown("a **b c** `d`\n", inked), "a \x1b[0m\x1b[1mb c \x1b[0m\x1b[36md\x1b[0m\n");
  EXPECT_EQ(Shown("# T\n* x", inked), "\x1b[0m\x1b[1mT\x1b[0m\n• x");
  EXPECT_EQ(Shown("```c\na *b*\n\nc\n```\n*d*", inked),
            "```c\n\x1b[0m\x1b[36ma *b*\x1b[0m\n\n\x1b[0m\x1b[36mc\x1b[0m\n"
            "\x1b[0m\x1b[36m```\x1b[0m\n\x1b[0m\x1b[3md\x1b[0m");
  // Escapes of a model stay pictures, inside of inks too.
  EXPECT_EQ(Shown("**\x1b[2J**", inked), "\x1b[0m\x1b[1m␛[2J\x1b[0m");
  EXPECT_EQ(Shown("<think>**a**</think>**b**", inked),
            "<think>**a**</think>\x1b[0m\x1b[1mb\x1b[0m");
  EXPECT_EQ(Shown("one **two three**", {.columns = 9, .markdown = true}),
            "one \x1b[0m\x1b[1mtwo\nthree\x1b[0m");
  EXPECT_EQ(Shown("**a** *b"), "**a** *b");  // not on
}

TEST(Screen, RowsOfALine) {
  UseUtf8();
  EXPECT_EQ(RowAtEnd(L"", 5), 0);
  EXPECT_EQ(RowAtEnd(L"abcd", 5), 0);
  EXPECT_EQ(RowAtEnd(L"abcde", 5), 1);  // the cursor waits in the next row
  EXPECT_EQ(RowAtEnd(L"abcdefghij", 5), 2);
  EXPECT_EQ(RowAtEnd(L"你好世", 5), 1);  // two columns each: one column stays empty
  EXPECT_EQ(RowAtEnd(L"ab\x01", 4), 1);
  EXPECT_EQ(RowAtEnd(L"abcdef\nab", 5), 2);
  EXPECT_EQ(RowAtEnd(std::wstring(80, L'x'), 0), 1);
}

}  // namespace
}  // namespace latte::screen_text_test
