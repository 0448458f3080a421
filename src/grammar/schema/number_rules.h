// Rules of JSON numbers in a range.
#pragma once

#include <optional>
#include <string>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/grammar/pattern/rule_text.h"

namespace latte {

// A decimal number, exact. Zero is not negative.
struct Decimal {
  bool negative = false;
  std::string whole = "0";  // digits without leading zeros
  std::string fraction;     // digits without trailing zeros

  bool is_integer() const { return fraction.empty(); }
  // Significant digits.
  size_t digits() const { return (whole == "0" ? 0 : whole.size()) + fraction.size(); }
};

// Errors: kUnsupported for a number with more than 31 digits before or after the point.
[[nodiscard]] Result<Decimal> ToDecimal(const JsonOut& number);
// Below zero, zero or above zero: a is less than, equal to or more than b.
int Compare(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool excluded = false;
};

// A range of numbers.
struct NumberRange {
  bool integers_only = false;
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;
};

// The same with whole numbers as bounds, which are not excluded.
NumberRange WholeBounds(NumberRange range);
bool IsEmpty(const NumberRange& range);

// Any number, or any integer.
std::string FreeNumberRule(bool integers_only);

// Numbers with bounds are written without an exponent. Nothing if the range is empty.
// Errors: kUnsupported for a bound that is excluded and has more than 15 digits.
[[nodiscard]] Result<RuleExpression> NumberRule(const NumberRange& range);

// The multiples of `factor` in a range of integers.
// Errors: kUnsupported for a factor or a range that would take too many rules.
[[nodiscard]] Result<RuleExpression> MultiplesRule(int64_t factor, const NumberRange& range,
                                                   RuleSet* rules);

}  // namespace latte
