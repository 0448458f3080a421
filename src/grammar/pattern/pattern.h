// Regular expressions of schemas (`pattern`, `patternProperties`), as ECMA-262 defines them with
// the flag u. Validators differ in the meaning of \d, \w and \s beyond ASCII: a class contains only
// the characters that all of them accept. Lookarounds, back references, \b and \p{…} are refused.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/grammar/pattern/char_set.h"

namespace latte {

// The values that match: a tree without anchors, which describes whole values.
struct Pattern {
  enum class Kind : uint8_t { kChars, kSequence, kChoice, kRepeat };
  static constexpr int kNoEnd = -1;

  Kind kind = Kind::kSequence;
  CharSet chars;               // kChars: one of them
  std::vector<Pattern> parts;  // kRepeat: one part
  int least = 0;               // kRepeat
  int most = kNoEnd;

  static Pattern Chars(CharSet chars);
  static Pattern Text(std::string_view utf8);
  static Pattern Sequence(std::vector<Pattern> parts);
  static Pattern Choice(std::vector<Pattern> parts);
  static Pattern Repeat(Pattern part, int least, int most);
  static Pattern AnyText() { return Repeat(Chars(CharSet::All()), 0, kNoEnd); }

  bool MatchesEmpty() const;
};

enum class PatternEnds : uint8_t {
  kSearch,  // a value matches if a part of it does, as validators read a pattern
  kWhole,   // narrower, for generation: an end without ^ or $ is free only if the other end has one
};

// Errors: kInvalidArgument for text that is no regular expression; kUnsupported naming the part
// that no grammar can express. Messages begin with the position.
[[nodiscard]] Result<Pattern> ParsePattern(std::string_view regex, PatternEnds ends);

}  // namespace latte
