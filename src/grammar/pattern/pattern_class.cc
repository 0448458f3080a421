#include "src/grammar/pattern/pattern_class.h"

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

const CharSet& AsciiDigits() {
  static const CharSet set = {{'0', '9'}};
  return set;
}
const CharSet& AsciiWord() {
  static const CharSet set = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return set;
}
const CharSet& AsciiSpace() {
  static const CharSet set = {{'\t', '\r'}, {' ', ' '}};
  return set;
}
// What some implementation takes for white space.
const CharSet& WideSpace() {
  static const CharSet set = [] {
    CharSet made = {{'\t', '\r'}, {0x1C, 0x20},     {0x85, 0x85},
                    {0xA0, 0xA0}, {0x180E, 0x180E}, {0xFEFF, 0xFEFF}};
    for (char32_t c = 0x1680; c <= 0x3000; ++c)
      if (IsWhiteSpace(c)) made.Add({c, c});
    return made;
  }();
  return set;
}
const CharSet& BeyondAscii() {
  static const CharSet set = {{0x80, 0x10FFFF}};
  return set;
}
// The dot; line ends differ, too.
const CharSet& NoLineEnds() {
  static const CharSet set =
      CharSet{{'\n', '\n'}, {'\r', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}.Complement();
  return set;
}

CharSet PlusBeyondAscii(CharSet set) {
  set.Add(BeyondAscii());
  return set;
}

bool IsSyntaxChar(char32_t c) {
  return c < 0x80 &&
         std::string_view("^$\\.*+?()[]{}|/-\"'`#&,:;<=>@_~%! ").find(static_cast<char>(c)) !=
             std::string_view::npos;
}

}  // namespace

PatternReader::PatternReader(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = DecodeUtf8(text);
    chars_ += step.code_point;
    text.remove_prefix(static_cast<size_t>(step.bytes));
  }
}

bool PatternReader::SeesDigit(size_t ahead) const {
  return at_ + ahead < chars_.size() && AsciiDigits().Contains(chars_[at_ + ahead]);
}

bool PatternReader::SeesBounds() const {
  size_t ahead = 1;
  if (!Sees('{') || !SeesDigit(ahead)) return false;
  while (SeesDigit(ahead)) ++ahead;
  if (Sees(',', ahead)) ++ahead;
  while (SeesDigit(ahead)) ++ahead;
  return Sees('}', ahead);
}

bool PatternReader::Take(char c) {
  if (!Sees(c)) return false;
  ++at_;
  return true;
}

tl::unexpected<Error> PatternReader::Wrong(std::string_view what) const {
  return InvalidArgument(
      fmt::format("character {}: {}; expected a regular expression", at_ + 1, what));
}

tl::unexpected<Error> PatternReader::CannotDo(std::string_view what) const {
  return Unsupported(fmt::format("character {}: {} cannot be enforced", at_ + 1, what));
}

Result<CharSet> PatternReader::TakeChars() {
  if (Take('.')) return NoLineEnds();
  if (Take('[')) return TakeClass();
  if (Take('\\')) {
    LATTE_ASSIGN_OR_RETURN(Escape escape, TakeEscape(/*in_class=*/false));
    return std::move(escape.chars.sure);
  }
  const char32_t c = Next();
  return CharSet{{c, c}};
}

PatternReader::Class PatternReader::ShorthandOf(char32_t letter) {
  switch (letter) {
    case 'd':
      return {AsciiDigits(), PlusBeyondAscii(AsciiDigits())};
    case 'D':
      return {PlusBeyondAscii(AsciiDigits()).Complement(), AsciiDigits().Complement()};
    case 'w':
      return {AsciiWord(), PlusBeyondAscii(AsciiWord())};
    case 'W':
      return {PlusBeyondAscii(AsciiWord()).Complement(), AsciiWord().Complement()};
    case 's':
      return {AsciiSpace(), WideSpace()};
    case 'S':
      return {WideSpace().Complement(), AsciiSpace().Complement()};
    default:
      return {};
  }
}

Result<char32_t> PatternReader::TakeHex(int digits) {
  char32_t out = 0;
  for (int i = 0; i < digits; ++i) {
    const int digit = AtEnd() || chars_[at_] > 0x7F ? -1 : HexDigit(static_cast<char>(chars_[at_]));
    if (digit < 0) return Wrong("hexadecimal digits are missing");
    out = out * 16 + static_cast<char32_t>(digit);
    ++at_;
  }
  return out;
}

// What follows \u: four digits, two times four for a pair of surrogates, or digits in braces.
Result<char32_t> PatternReader::TakeUnicode() {
  char32_t out = 0;
  if (Take('{')) {
    int digits = 0;
    while (!AtEnd() && !Sees('}') && ++digits <= 8) {
      LATTE_ASSIGN_OR_RETURN(const char32_t digit, TakeHex(1));
      out = out * 16 + digit;
    }
    if (digits == 0 || out > 0x10FFFF || !Take('}')) return Wrong("no character has this number");
    return out;
  }
  LATTE_ASSIGN_OR_RETURN(out, TakeHex(4));
  if (out >= 0xD800 && out < 0xDC00 && Sees('\\') && Sees('u', 1)) {
    at_ += 2;
    LATTE_ASSIGN_OR_RETURN(const char32_t low, TakeHex(4));
    if (low < 0xDC00 || low > 0xDFFF) return Wrong("a surrogate stands alone");
    return 0x10000 + ((out - 0xD800) << 10) + (low - 0xDC00);
  }
  return out;
}

Result<PatternReader::Escape> PatternReader::TakeEscape(bool in_class) {
  if (AtEnd()) return Wrong("nothing follows the last backslash");
  const char32_t letter = Next();
  if (Class shorthand = ShorthandOf(letter); !shorthand.sure.empty())
    return Escape{.chars = std::move(shorthand)};
  char32_t one = letter;
  constexpr std::string_view kLetters = "tnvfr";
  constexpr std::string_view kMeanings = "\t\n\v\f\r";
  if (const size_t i = letter < 0x80 ? kLetters.find(static_cast<char>(letter)) : kLetters.npos;
      i != kLetters.npos) {
    one = static_cast<char32_t>(kMeanings[i]);
  } else if (letter == 'b' && in_class) {
    one = '\b';
  } else if (letter == '0' && !SeesDigit()) {
    one = 0;
  } else if (letter == 'x') {
    LATTE_ASSIGN_OR_RETURN(one, TakeHex(2));
  } else if (letter == 'u') {
    LATTE_ASSIGN_OR_RETURN(one, TakeUnicode());
  } else if (letter == 'c' && !AtEnd() && chars_[at_] < 0x80 &&
             ((chars_[at_] | 0x20) >= 'a' && (chars_[at_] | 0x20) <= 'z')) {
    one = Next() % 32;
  } else if (!IsSyntaxChar(letter)) {
    std::string name;
    AppendUtf8(letter, &name);
    return CannotDo(fmt::format("\\{}", name));
  }
  Escape out{.is_one = true, .one = one};
  out.chars.sure.Add({one, one});
  out.chars.maybe = out.chars.sure;
  return out;
}

Result<PatternReader::Escape> PatternReader::ClassAtom() {
  if (Take('\\')) return TakeEscape(/*in_class=*/true);
  const char32_t c = Next();
  Escape out{.is_one = true, .one = c};
  out.chars.sure.Add({c, c});
  out.chars.maybe = out.chars.sure;
  return out;
}

Result<CharSet> PatternReader::TakeClass() {
  const bool negated = Take('^');
  Class out;
  while (!AtEnd() && !Sees(']')) {
    LATTE_ASSIGN_OR_RETURN(Escape item, ClassAtom());
    if (item.is_one && Sees('-') && !Sees(']', 1) && at_ + 1 < chars_.size()) {
      Take('-');
      LATTE_ASSIGN_OR_RETURN(const Escape last, ClassAtom());
      if (!last.is_one) return Wrong("a range ends with a class");
      if (last.one < item.one) return Wrong("the ends of a range are out of order");
      item.chars.sure.Add({item.one, last.one});
      item.chars.maybe = item.chars.sure;
    }
    out.sure.Add(item.chars.sure);
    out.maybe.Add(item.chars.maybe);
  }
  if (!Take(']')) return Wrong("a class does not end");
  return negated ? out.maybe.Complement() : out.sure;
}

}  // namespace latte
