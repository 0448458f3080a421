#include "src/grammar/schema/number_rules.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/json_out.h"

namespace latte {
namespace {

// Numbers without bounds have at most so many: few readers accept more.
constexpr size_t kMostDigits = 31;
// Decimals with so many digits differ as doubles, too.
constexpr size_t kExactDigits = 15;

std::string OneDigit(char first, char last) {
  return first == last ? fmt::format("\"{}\"", first) : fmt::format("[{}-{}]", first, last);
}
std::string Digits(size_t least, size_t most) {
  return RepeatRule("[0-9]", static_cast<int64_t>(least), static_cast<int64_t>(most));
}

// So many digits, between two numbers of the same length; no bound: any digits.
std::string SameLength(std::optional<std::string_view> low, std::optional<std::string_view> high,
                       size_t length) {
  if (length == 0) return "\"\"";
  if (!low && !high) return Digits(length, length);
  const char first = low ? low->front() : '0';
  const char last = high ? high->front() : '9';
  const auto rest = [](std::optional<std::string_view> digits) {
    return digits ? std::optional(digits->substr(1)) : std::nullopt;
  };
  if (low && high && first == last)
    return SequenceRule({OneDigit(first, first), SameLength(rest(low), rest(high), length - 1)});
  std::vector<std::string> ways;
  if (low)
    ways.push_back(
        SequenceRule({OneDigit(first, first), SameLength(rest(low), std::nullopt, length - 1)}));
  const char from = static_cast<char>(first + (low ? 1 : 0));
  const char to = static_cast<char>(last - (high ? 1 : 0));
  if (from <= to)
    ways.push_back(SequenceRule({OneDigit(from, to), Digits(length - 1, length - 1)}));
  if (high)
    ways.push_back(
        SequenceRule({OneDigit(last, last), SameLength(std::nullopt, rest(high), length - 1)}));
  return *ChoiceRule(ways);
}

// Whole numbers from low to high, of digits without leading zeros. No high: of at most 31 digits.
RuleExpression WholeRule(const std::string& low, const std::optional<std::string>& high) {
  std::vector<std::string> ways;
  const size_t longest = high ? high->size() : low.size();
  for (size_t length = low.size(); length <= longest; ++length) {
    std::string least(length, '0');
    if (length > 1) least.front() = '1';
    const std::string most(length, '9');
    const std::string& from = length == low.size() ? low : least;
    const std::string& to = high && length == high->size() ? *high : most;
    if (from <= to) ways.push_back(SameLength(from, to, length));
  }
  if (!high && longest < kMostDigits) ways.push_back("[1-9] " + Digits(longest, kMostDigits - 1));
  return ChoiceRule(ways);
}

// A bound of the digits after the point.
struct FractionBound {
  std::string_view digits;
  bool excluded = false;
};
using MaybeBound = std::optional<FractionBound>;

MaybeBound RestOf(const MaybeBound& bound) {
  if (!bound) return std::nullopt;
  return FractionBound{bound->digits.substr(std::min<size_t>(1, bound->digits.size())),
                       bound->excluded};
}

// Whether no further digit may follow: the rest is zero then.
bool ZeroIsBetween(const MaybeBound& low, const MaybeBound& high) {
  return (!low || (low->digits.empty() && !low->excluded)) &&
         (!high || !high->digits.empty() || !high->excluded);
}

// 1 to `places` digits.
RuleExpression FractionDigits(MaybeBound low, const MaybeBound& high, size_t places) {
  if (places == 0) return std::nullopt;
  if (low && low->digits.empty() && !low->excluded) low.reset();
  if (!low && !high) return Digits(1, places);
  const char first = low && !low->digits.empty() ? low->digits.front() : '0';
  const char last = !high ? '9' : high->digits.empty() ? '0' : high->digits.front();
  std::vector<std::string> ways;
  const auto add = [&](char digit, const MaybeBound& low_rest, const MaybeBound& high_rest) {
    const RuleExpression more = FractionDigits(low_rest, high_rest, places - 1);
    if (ZeroIsBetween(low_rest, high_rest))
      ways.push_back(SequenceRule({OneDigit(digit, digit), more ? OptionalRule(*more) : "\"\""}));
    else if (more)
      ways.push_back(SequenceRule({OneDigit(digit, digit), *more}));
  };
  if (low && high && first == last) {
    add(first, RestOf(low), RestOf(high));
    return ChoiceRule(ways);
  }
  if (low) add(first, RestOf(low), std::nullopt);
  const char from = static_cast<char>(first + (low ? 1 : 0));
  const char to = static_cast<char>(last - (high ? 1 : 0));
  if (from <= to) ways.push_back(SequenceRule({OneDigit(from, to), Digits(0, places - 1)}));
  if (high) add(last, std::nullopt, RestOf(high));
  return ChoiceRule(ways);
}

// The point and the digits after it, if any.
RuleExpression FractionRule(const MaybeBound& low, const MaybeBound& high, size_t places) {
  const RuleExpression digits = FractionDigits(low, high, places);
  const RuleExpression some = digits ? RuleExpression("\".\" " + *digits) : RuleExpression();
  if (!ZeroIsBetween(low, high)) return some;
  return some ? OptionalRule(*some) : "\"\"";
}

std::string Successor(std::string digits) {
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (*digit != '9') {
      ++*digit;
      return digits;
    }
    *digit = '0';
  }
  digits.front() = '1';
  digits += '0';
  return digits;
}
// Requires: not zero.
std::string Predecessor(std::string digits) {
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (*digit != '0') {
      --*digit;
      break;
    }
    *digit = '9';
  }
  if (digits.size() > 1 && digits.front() == '0') digits.erase(0, 1);
  return digits;
}

int CompareSizes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  if (const int order = a.whole.compare(b.whole); order != 0) return order;
  return a.fraction.compare(b.fraction);
}

// Numbers that are not negative, from low to high. Requires: low <= high.
RuleExpression SizeRule(const NumberBound& low, const std::optional<NumberBound>& high,
                        bool integers_only) {
  if (integers_only)
    return WholeRule(low.value.whole, high ? std::optional(high->value.whole) : std::nullopt);
  const size_t longest = std::max(low.value.whole.size(), high ? high->value.whole.size() : 0);
  const size_t places =
      std::max({longest < kExactDigits ? kExactDigits - longest : 0, low.value.fraction.size(),
                high ? high->value.fraction.size() : 0});
  const FractionBound low_fraction{low.value.fraction, low.excluded};
  const MaybeBound high_fraction =
      high ? MaybeBound(FractionBound{high->value.fraction, high->excluded}) : std::nullopt;
  std::vector<std::string> ways;
  const auto add = [&](const RuleExpression& whole, const RuleExpression& fraction) {
    if (whole && fraction) ways.push_back(SequenceRule({*whole, *fraction}));
  };
  const std::string first = LiteralRule(low.value.whole);
  if (high && low.value.whole == high->value.whole) {
    add(first, FractionRule(low_fraction, high_fraction, places));
    return ChoiceRule(ways);
  }
  add(first, FractionRule(low_fraction, std::nullopt, places));
  const std::string next = Successor(low.value.whole);
  const RuleExpression any = FractionRule(std::nullopt, std::nullopt, places);
  if (!high) {
    add(WholeRule(next, std::nullopt), any);
    return ChoiceRule(ways);
  }
  const Decimal before{false, Predecessor(high->value.whole), ""};
  if (CompareSizes(Decimal{false, next, ""}, before) <= 0) add(WholeRule(next, before.whole), any);
  add(LiteralRule(high->value.whole), FractionRule(std::nullopt, high_fraction, places));
  return ChoiceRule(ways);
}

NumberBound Opposite(NumberBound bound) {
  bound.value.negative = !bound.value.negative;
  return bound;
}

Decimal Truncated(Decimal value) {
  value.fraction.clear();
  if (value.whole == "0") value.negative = false;
  return value;
}
// The next whole number. Requires: is_integer().
Decimal Above(Decimal value) {
  value.whole = value.negative ? Predecessor(value.whole) : Successor(value.whole);
  return Truncated(std::move(value));
}
Decimal Below(Decimal value) {
  const bool away = value.negative || value.whole == "0";
  value.whole = away ? Successor(value.whole) : Predecessor(value.whole);
  value.negative = away;
  return value;
}

// Where a bound is excluded, no other decimal may be the same double.
Status CheckExact(const NumberRange& range) {
  if (range.integers_only) return {};
  size_t whole = 0;
  size_t fraction = 0;
  bool excluded = false;
  for (const auto& bound : {range.low, range.high}) {
    if (!bound) continue;
    whole = std::max(whole, bound->value.whole.size());
    fraction = std::max(fraction, bound->value.fraction.size());
    excluded |= bound->excluded;
  }
  if (!excluded || whole + fraction <= kExactDigits) return {};
  return Unsupported(
      fmt::format("an excluded bound next to bounds of more than {} digits", kExactDigits));
}

}  // namespace

Result<Decimal> ToDecimal(const JsonOut& number) {
  const std::string text = Dump(number);
  const size_t e = text.find_first_of("eE");
  std::string_view digits = std::string_view(text).substr(0, e);
  Decimal out;
  out.negative = digits.starts_with('-');
  if (out.negative) digits.remove_prefix(1);
  const size_t point = digits.find('.');
  out.whole = digits.substr(0, point);
  if (point != digits.npos) out.fraction = digits.substr(point + 1);
  int exponent = e == text.npos ? 0 : std::atoi(text.c_str() + e + 1);
  for (; exponent > 0 && out.whole.size() <= kMostDigits; --exponent) {
    out.whole += out.fraction.empty() ? '0' : out.fraction.front();
    if (!out.fraction.empty()) out.fraction.erase(0, 1);
  }
  for (; exponent < 0 && out.fraction.size() <= kMostDigits; ++exponent) {
    out.fraction.insert(0, 1, out.whole.back());
    out.whole.pop_back();
    if (out.whole.empty()) out.whole.push_back('0');
  }
  while (out.fraction.ends_with('0')) out.fraction.pop_back();
  out.whole.erase(0, std::min(out.whole.find_first_not_of('0'), out.whole.size() - 1));
  if (exponent != 0 || out.whole.size() > kMostDigits || out.fraction.size() > kMostDigits)
    return Unsupported(
        fmt::format("{}: expected a number of at most {} digits before and after the point", text,
                    kMostDigits));
  if (out.digits() == 0) out.negative = false;
  return out;
}

int Compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? CompareSizes(b, a) : CompareSizes(a, b);
}

std::string FreeNumberRule(bool integers_only) {
  const std::string whole =
      "\"-\"? " + *ChoiceRule({"\"0\"", "[1-9] " + Digits(0, kMostDigits - 1)});
  if (integers_only) return whole;
  return whole + " " + OptionalRule("\".\" " + Digits(1, kMostDigits - 1)) + " " +
         OptionalRule("[eE] [+\\-]? " + Digits(1, 2));
}

NumberRange WholeBounds(NumberRange range) {
  if (range.low) {
    Decimal& low = range.low->value;
    const bool up = low.is_integer() ? range.low->excluded : !low.negative;
    low = up ? Above(Truncated(low)) : Truncated(low);
    range.low->excluded = false;
  }
  if (range.high) {
    Decimal& high = range.high->value;
    const bool down = high.is_integer() ? range.high->excluded : high.negative;
    high = down ? Below(Truncated(high)) : Truncated(high);
    range.high->excluded = false;
  }
  return range;
}

bool IsEmpty(const NumberRange& range) {
  if (range.integers_only) {
    const NumberRange whole = WholeBounds(range);
    return whole.low && whole.high && Compare(whole.low->value, whole.high->value) > 0;
  }
  if (!range.low || !range.high) return false;
  const int order = Compare(range.low->value, range.high->value);
  return order > 0 || (order == 0 && (range.low->excluded || range.high->excluded));
}

Result<RuleExpression> NumberRule(const NumberRange& given) {
  const NumberRange range = given.integers_only ? WholeBounds(given) : given;
  if (IsEmpty(range)) return RuleExpression();
  const auto& [integers_only, low, high] = range;
  if (!low && !high) return RuleExpression(FreeNumberRule(integers_only));
  LATTE_RETURN_IF_ERROR(CheckExact(range));
  std::vector<std::string> ways;
  if (!low || low->value.negative) {
    NumberBound small{.value = {.whole = integers_only ? "1" : "0"}};
    if (high && high->value.negative) small = Opposite(*high);
    if (high && high->value.digits() == 0) small.excluded = high->excluded;
    const std::optional<NumberBound> large = low ? std::optional(Opposite(*low)) : std::nullopt;
    if (const RuleExpression size = SizeRule(small, large, integers_only))
      ways.push_back("\"-\" " + *size);
  }
  if (!high || !high->value.negative) {
    const NumberBound small = low && !low->value.negative ? *low : NumberBound();
    if (const RuleExpression size = SizeRule(small, high, integers_only)) ways.push_back(*size);
  }
  return ChoiceRule(ways);
}

}  // namespace latte
