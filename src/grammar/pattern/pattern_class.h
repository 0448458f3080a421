// The characters of a regular expression: escapes and classes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/grammar/pattern/char_set.h"

namespace latte {

// A cursor in a regular expression.
class PatternReader {
 public:
  explicit PatternReader(std::string_view text);

  bool AtEnd() const { return at_ == chars_.size(); }
  bool Sees(char c, size_t ahead = 0) const {
    return at_ + ahead < chars_.size() && chars_[at_ + ahead] == static_cast<char32_t>(c);
  }
  bool SeesDigit(size_t ahead = 0) const;
  bool SeesBounds() const;  // {n}, {n,} or {n,m}
  bool Take(char c);
  char32_t Next() { return chars_[at_++]; }  // Requires: !AtEnd()

  // A character, an escape, a class or a dot. Requires: !AtEnd().
  [[nodiscard]] Result<CharSet> TakeChars();

  tl::unexpected<Error> Wrong(std::string_view what) const;
  tl::unexpected<Error> CannotDo(std::string_view what) const;

 private:
  // The characters that a class holds for all validators, and for some: they differ beyond ASCII.
  struct Class {
    CharSet sure;
    CharSet maybe;
  };
  struct Escape {
    Class chars;
    bool is_one = false;  // one character, which may begin or end a range
    char32_t one = 0;
  };

  Result<CharSet> TakeClass();
  Result<Escape> TakeEscape(bool in_class);
  Result<Escape> ClassAtom();
  Result<char32_t> TakeHex(int digits);
  Result<char32_t> TakeUnicode();
  static Class ShorthandOf(char32_t letter);

  std::u32string chars_;
  size_t at_ = 0;
};

}  // namespace latte
