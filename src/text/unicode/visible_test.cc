#include "src/text/unicode/visible.h"

#include <gtest/gtest.h>

#include "src/text/unicode/printable.h"
#include "src/text/unicode/unicode.h"

namespace latte::visible_test {
namespace {

using namespace std::string_view_literals;

TEST(Visible, NothingThatATerminalObeysStays) {
  EXPECT_EQ(VisibleLine("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(VisibleLine("\x1b]52;c;ZXZpbA==\x07"), "\\x1b]52;c;ZXZpbA==\\x07");
  EXPECT_EQ(VisibleLine("a\0b\r\n\t\x7f"sv), "a\\x00b\\x0d\\x0a\\x09\\u007f");
  EXPECT_EQ(VisibleLine("\u009b2J"), "\\u009b2J") << "CSI of C1";
  EXPECT_EQ(VisibleLine("\u202e\u2066\u200f\u061c"), "\\u202e\\u2066\\u200f\\u061c");
  EXPECT_EQ(VisibleLine("\U000e0041"), "\\udb40\\udc41");
  EXPECT_EQ(VisibleLine("a\x9b b\xff"), "a\\x9b b\\xff") << "C1 of a terminal without UTF-8";
  EXPECT_EQ(VisibleLines("a\tb\nc\r\x1b"), "a\tb\nc\\x0d\\x1b");
}

TEST(Visible, AllElseStays) {
  for (const std::string_view text :
       {""sv, "plain \\ \"text\""sv, "größer, 字, 🙂"sv, "\xef\xbf\xbd"sv}) {
    EXPECT_EQ(VisibleLine(text), text);
    EXPECT_EQ(VisibleLines(text), text);
  }
  const std::string twice = VisibleLine("\x1b\u009b\xff");
  EXPECT_EQ(VisibleLine(twice), twice);
}

TEST(Visible, EveryCodePoint) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text;
    AppendUtf8(c, &text);
    const std::string shown = VisibleLine(text);
    if (IsHidden(c))
      ASSERT_TRUE(shown.starts_with('\\') && shown.size() >= 4) << static_cast<uint32_t>(c);
    else
      ASSERT_EQ(shown, text) << static_cast<uint32_t>(c);
  }
}

TEST(Visible, PrintableUsesTheSameTable) {
  EXPECT_EQ(Printable("\u009b\u202ex", 200), "\\u009b\\u202ex");
  EXPECT_EQ(Printable("aé\u202e", 2), "a… (6 bytes)");
}

}  // namespace
}  // namespace latte::visible_test
