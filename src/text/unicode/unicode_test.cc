#include "src/text/unicode/unicode.h"

#include <gtest/gtest.h>

#include "src/text/unicode/byte_level.h"
#include "src/text/unicode/case.h"

namespace latte::unicode_test {
namespace {

std::string Repair(std::string_view bytes) {
  std::string out;
  AppendValidUtf8(bytes, &out);
  return out;
}

TEST(Unicode, EveryScalarValueComesBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string bytes;
    AppendUtf8(c, &bytes);
    const Utf8Step step = DecodeUtf8(bytes);
    ASSERT_TRUE(step.valid);
    ASSERT_EQ(step.code_point, c);
    ASSERT_EQ(static_cast<size_t>(step.bytes), bytes.size());
    ASSERT_EQ(ValidUtf8Prefix(bytes), bytes.size());
  }
}

// Table 3-8 of the Unicode standard and the WHATWG decoder: one U+FFFD for each maximal part.
TEST(Unicode, EachMaximalInvalidPartBecomesOneReplacement) {
  const std::string r = "\xEF\xBF\xBD";
  const std::pair<std::string, std::string> rows[] = {
      {"", ""},
      {"abc", "abc"},
      {"\x80", r},
      {"\xC0\xAF", r + r},                  // overlong: neither byte begins a sequence
      {"\xE0\x9F\x80", r + r + r},          // overlong
      {"\xED\xA0\x80", r + r + r},          // surrogate
      {"\xF4\x90\x80\x80", r + r + r + r},  // above U+10FFFF
      {"\xF5\x80", r + r},                  // not a first byte
      {"\xE2\x82", r},                      // cut off: one part
      {"\xF0\x9F\x98", r},                  // cut off: one part
      {"\xF0\x9F\x98(", r + "("},           // the next byte is decoded again
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", r + r + r + r + "A"},
      {"ok\xC3\xA9\xFFok", "ok\xC3\xA9" + r + "ok"},
  };
  for (const auto& [bytes, expected] : rows) EXPECT_EQ(Repair(bytes), expected);
}

TEST(Unicode, ValidPrefixEndsBeforeTheFirstInvalidByteAtEveryOffset) {
  for (size_t ascii = 0; ascii < 20; ++ascii) {
    const std::string text(ascii, 'x');
    EXPECT_EQ(ValidUtf8Prefix(text + "\xFF" + text), ascii);
    EXPECT_EQ(ValidUtf8Prefix(text + "\xC3\xA9" + text), 2 * ascii + 2);
  }
}

TEST(Unicode, UnfinishedSuffixIsWhatMoreBytesCouldFinish) {
  EXPECT_EQ(UnfinishedUtf8Suffix(""), 0u);
  EXPECT_EQ(UnfinishedUtf8Suffix("a"), 0u);
  EXPECT_EQ(UnfinishedUtf8Suffix("a\xC3"), 1u);
  EXPECT_EQ(UnfinishedUtf8Suffix("a\xC3\xA9"), 0u);
  EXPECT_EQ(UnfinishedUtf8Suffix("\xF0\x9F\x98"), 3u);
  EXPECT_EQ(UnfinishedUtf8Suffix("\xF0\x9F"), 2u);
  EXPECT_EQ(UnfinishedUtf8Suffix("\xED\xA0"), 0u);      // can only become a surrogate
  EXPECT_EQ(UnfinishedUtf8Suffix("\x80\x80\x80"), 0u);  // no byte begins a sequence
  EXPECT_EQ(UnfinishedUtf8Suffix("\xFF"), 0u);
}

TEST(Unicode, WhiteSpaceIsTheUnicodeProperty) {
  int count = 0;
  for (char32_t c = 0; c < 0x110000; ++c) count += IsWhiteSpace(c) ? 1 : 0;
  EXPECT_EQ(count, 25);
  for (const char32_t c : {0x9, 0xD, 0x20, 0x85, 0xA0, 0x1680, 0x200A, 0x2028, 0x202F, 0x3000})
    EXPECT_TRUE(IsWhiteSpace(c)) << static_cast<uint32_t>(c);
  for (const char32_t c : {0x8, 0xE, 0x180E, 0x200B, 0x2060, 0xFEFF})
    EXPECT_FALSE(IsWhiteSpace(c)) << static_cast<uint32_t>(c);
}

std::string Cased(void (*append)(char32_t, std::string*), std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = DecodeUtf8(text.substr(at));
    append(step.code_point, &out);
    at += static_cast<size_t>(step.bytes);
  }
  return out;
}

TEST(Unicode, CaseIsThatOfPython) {
  EXPECT_EQ(Cased(AppendUpper, "aZ9é ß ﬁ ŉ я ǆ ᾳ 日 ა 𐐨"),
            "AZ9É SS FI ʼN Я Ǆ ΑΙ 日 Ა 𐐀");
  EXPECT_EQ(Cased(AppendLower, "aZ9É ẞ İ Я Ǆ Ǆ 日 Ა 𐐀"), "az9é ß i̇ я ǆ ǆ 日 ა 𐐨");
  EXPECT_EQ(Cased(AppendTitle, "aZ9é ß ﬁ ǆ ᾳ 日 ა"), "AZ9É Ss Fi ǅ ᾼ 日 ა");
  // Every other letter of these ranges is the upper case of the one after it.
  for (char32_t c = 0x100; c < 0x12F; ++c) {
    std::string lower;
    AppendLower(c, &lower);
    std::string expected;
    AppendUtf8(c | 1, &expected);
    EXPECT_EQ(lower, expected);
  }
  for (const char32_t c : {U'a', U'Z', U'ß', U'ǅ', U'Ω'}) EXPECT_TRUE(HasCase(c));
  for (const char32_t c : {U'9', U' ', U'日', U'ª', U'😀'}) EXPECT_FALSE(HasCase(c));
}

TEST(ByteAlphabet, IsThatOfGpt2AndCanBeUndone) {
  EXPECT_EQ(ByteAlphabetSymbol('!'), "!");
  EXPECT_EQ(ByteAlphabetSymbol(' '), "Ġ");
  EXPECT_EQ(ByteAlphabetSymbol('\n'), "Ċ");
  EXPECT_EQ(ByteAlphabetSymbol(0x00), "Ā");
  EXPECT_EQ(ByteAlphabetSymbol(0xAD), "Ń");
  EXPECT_EQ(ByteAlphabetSymbol(0xFF), "ÿ");
  std::string spelled, all, undone;
  for (int byte = 0; byte < 256; ++byte) {
    spelled += ByteAlphabetSymbol(static_cast<uint8_t>(byte));
    all += static_cast<char>(byte);
  }
  EXPECT_TRUE(DecodeByteAlphabet(spelled, &undone));
  EXPECT_EQ(undone, all);
  for (const char* foreign : {" ", "a b", "\n", "｜", "ń", "\xFF"})
    EXPECT_FALSE(DecodeByteAlphabet(foreign, &undone)) << foreign;
}

}  // namespace
}  // namespace latte::unicode_test
