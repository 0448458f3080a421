// Computes the price of a grammar in the syntax kEbnf from its text, in linear time, before
// xgrammar sees it. A unit is about a millisecond of one slow CPU for a vocabulary of 130,000
// tokens: bench/notebook/2026-11-grammar-cost.md has the measurements.
//
// The price is the sum of
//   - each occurrence of a character class that takes most tokens: a mask of all tokens is computed
//     for it, 30 ms. A class of a few letters or digits costs less.
//   - rules: 10 ms for each kilobyte.
// Two constructs make masks arbitrarily slow, regardless of the compilation:
//   - nested repetitions without a separator, as in ([a-z]{1,50}){1,50}: the product of the counts.
//   - adjacent optional or repeated parts, as in ("a" | "") ("a" | "") …: their number.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "latte/status.h"

namespace latte {

// Bounds of one grammar, and of all parts of a structural tag together.
constexpr int64_t kMostRulePrice = 8'000;
constexpr int64_t kMostTagPrice = 40'000;
constexpr int64_t kMostNested = 256;
constexpr int64_t kMostVarying = 64;

// How a rule affects masks.
struct RuleShape {
  bool ends = false;    // some text matches it
  bool varies = false;  // all parts of it may be left out, or repeated
  int64_t whole = 0;    // if it varies: how many such parts are next to one another
  int64_t lead = 0;     // of such parts at its beginning
  int64_t trail = 0;    // of such parts at its end
  int64_t longest = 0;  // of such parts anywhere in it
  int64_t count = 1;    // the product of counts of repetitions in one another, up to the whole
  int64_t nested = 1;   // the largest product of such counts anywhere in it

  bool operator==(const RuleShape&) const = default;
};

// The price of rules, or of a part of one, in thousandths. For any text.
int64_t PriceOfRules(std::string_view rules);

// The shapes of all rules of a grammar, by name.
std::map<std::string, RuleShape, std::less<>> ShapesOf(std::string_view ebnf);

// Checks a grammar that a client wrote. Errors: kUnsupported with the rule, its price and the
// bound.
[[nodiscard]] Status CheckPrice(std::string_view ebnf);

}  // namespace latte
