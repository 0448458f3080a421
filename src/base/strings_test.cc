#include "src/base/strings.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace latte::strings_test {
namespace {

using Texts = std::vector<std::string_view>;

TEST(Strings, BlanksAreTrimmedAtBothEnds) {
  EXPECT_EQ(Trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(Trimmed("\n \n"), "");
  EXPECT_EQ(Trimmed("..a.", "."), "a");
  EXPECT_TRUE(IsBlank(""));
  EXPECT_TRUE(IsBlank(" \t\r\n"));
  EXPECT_FALSE(IsBlank(" a "));
}

TEST(Strings, ClassesOfCharactersAreThoseOfAscii) {
  std::string digits, letters, both;
  for (int c = 0; c < 256; ++c) {
    if (IsDigit(static_cast<char>(c))) digits += static_cast<char>(c);
    if (IsLetter(static_cast<char>(c))) letters += static_cast<char>(c);
    if (IsAlphanumeric(static_cast<char>(c))) both += static_cast<char>(c);
  }
  EXPECT_EQ(digits, kDigits);
  EXPECT_EQ(letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
  EXPECT_EQ(both, digits + letters);
}

TEST(Strings, DigitsAreAtLeastOneAndNothingElse) {
  EXPECT_TRUE(IsDigits("0"));
  EXPECT_TRUE(IsDigits("0123456789"));
  for (const std::string_view text : {"", "-1", "1 ", "1.5", "a", "1\xd9\xa1"})
    EXPECT_FALSE(IsDigits(text)) << text;
}

TEST(Strings, CaseIsOfAsciiLettersOnly) {
  EXPECT_EQ(Lowered("AZaz09@[`{\xc3\x84"), "azaz09@[`{\xc3\x84");
  EXPECT_EQ(InCapitals("AZaz09@[`{\xc3\xa4"), "AZAZ09@[`{\xc3\xa4");
  EXPECT_TRUE(EqualNoCase("Content-Type", "content-TYPE"));
  EXPECT_FALSE(EqualNoCase("@", "`"));  // differ by the bit of the case
  EXPECT_FALSE(EqualNoCase("a", "ab"));
  EXPECT_TRUE(StartsWithNoCase("HTTPS://x", "https://"));
  EXPECT_TRUE(StartsWithNoCase("x", ""));
  EXPECT_FALSE(StartsWithNoCase("http", "http:"));
}

TEST(Strings, HexadecimalDigitsHaveBothCases) {
  EXPECT_EQ(HexDigit('0'), 0);
  EXPECT_EQ(HexDigit('9'), 9);
  EXPECT_EQ(HexDigit('a'), 10);
  EXPECT_EQ(HexDigit('F'), 15);
  for (const char c : {'g', 'G', '/', ':', '@', '`', '\0'}) EXPECT_EQ(HexDigit(c), -1) << c;
  EXPECT_EQ(InHex({"\x00\x0f\xa5\xff", 4}), "000fa5ff");
}

TEST(Strings, APieceIsTakenWithItsSeparator) {
  std::string_view text = "a,,b,";
  Texts taken;
  while (!text.empty()) taken.push_back(TakePiece(&text, ','));
  EXPECT_EQ(taken, (Texts{"a", "", "b"}));
}

TEST(Strings, PiecesIncludeEmptyOnes) {
  EXPECT_EQ(Pieces("", ','), (Texts{""}));
  EXPECT_EQ(Pieces("a", ','), (Texts{"a"}));
  EXPECT_EQ(Pieces(",a,,b,", ','), (Texts{"", "a", "", "b", ""}));
}

TEST(Strings, TheBeginningOfAMarkAtTheEndOfAText) {
  EXPECT_EQ(BeginningOf("</think>", "a</th"), 4u);
  EXPECT_EQ(BeginningOf("aab", "aa"), 2u);
  EXPECT_EQ(BeginningOf("</think>", "a</think>"), 0u);  // a whole mark is no beginning of it
  EXPECT_EQ(BeginningOf("</think>", ""), 0u);
}

}  // namespace
}  // namespace latte::strings_test
