// Multiples of an integer: by name if a range holds few of them, else by their remainders, digit by
// digit.
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "src/grammar/schema/number_rules.h"

namespace latte {
namespace {

constexpr int64_t kMostNamed = 1'000;
constexpr int64_t kMostRemainders = 64;
constexpr int kMostMultipleDigits = 12;
constexpr size_t kInt64Digits = 18;
constexpr int64_t kFar = std::numeric_limits<int64_t>::max();

std::optional<int64_t> ToInt64(const Decimal& value) {
  if (value.whole.size() > kInt64Digits) return std::nullopt;
  int64_t out = 0;
  std::from_chars(value.whole.data(), value.whole.data() + value.whole.size(), out);
  return value.negative ? -out : out;
}

// The multiples of factor that are more than zero, without the zeros at their end.
class RemainderRules {
 public:
  RemainderRules(int64_t factor, RuleSet* rules) : factor_(factor), rules_(rules) {}

  std::string Positive() {
    std::map<int64_t, CharSet> digits;
    for (int64_t d = 1; d <= 9; ++d) AddDigit(d, d % factor_, &digits);
    return Ways(digits, kMostMultipleDigits - 1);
  }

 private:
  static void AddDigit(int64_t digit, int64_t remainder, std::map<int64_t, CharSet>* digits) {
    const auto c = static_cast<char32_t>('0' + digit);
    (*digits)[remainder].Add(CharRange{c, c});
  }
  std::string Ways(const std::map<int64_t, CharSet>& digits, int left) {
    std::vector<std::string> ways;
    for (const auto& [remainder, chars] : digits)
      if (const auto& rest = Rest(remainder, left); !rest.empty())
        ways.push_back(SequenceRule({*JsonCharRule(chars), rest}));
    return ways.empty() ? std::string() : *ChoiceRule(ways);
  }
  // The digits that may follow a number with this remainder; empty: none lead to a multiple.
  const std::string& Rest(int64_t remainder, int left) {
    const auto [at, is_new] = known_.try_emplace({remainder, left});
    if (!is_new) return at->second;
    std::vector<std::string> ways;
    if (remainder == 0) ways.emplace_back("\"\"");
    if (left > 0) {
      std::map<int64_t, CharSet> digits;
      for (int64_t d = 0; d <= 9; ++d) AddDigit(d, (remainder * 10 + d) % factor_, &digits);
      if (std::string more = Ways(digits, left - 1); !more.empty()) ways.push_back(std::move(more));
    }
    if (!ways.empty()) at->second = rules_->Add("digits", *ChoiceRule(ways));
    return at->second;
  }

  int64_t factor_;
  RuleSet* rules_;
  std::map<std::pair<int64_t, int>, std::string> known_;
};

}  // namespace

Result<RuleExpression> MultiplesRule(int64_t factor, const NumberRange& given, RuleSet* rules) {
  NumberRange range = given;
  range.integers_only = true;
  range = WholeBounds(range);
  if (IsEmpty(range)) return RuleExpression();
  // A bound that is absent or too large is far from zero.
  const int64_t low = range.low ? ToInt64(range.low->value).value_or(kFar) : kFar;
  const int64_t high = range.high ? ToInt64(range.high->value).value_or(kFar) : kFar;
  if (low != kFar && high != kFar && high / factor - low / factor < kMostNamed) {
    std::vector<std::string> ways;
    for (int64_t n = low / factor; n <= high / factor; ++n)
      if (n * factor >= low && n * factor <= high)
        ways.push_back(LiteralRule(fmt::format("{}", n * factor)));
    return ChoiceRule(ways);
  }
  std::string zeros;
  while (factor % 10 == 0) {
    factor /= 10;
    zeros += '0';
  }
  const bool positive = !range.high;
  const bool negative = !range.low;
  const bool near_zero =
      (!range.low || low == 0 || low == 1) && (!range.high || high == 0 || high == -1);
  if (factor > kMostRemainders || !near_zero || (!positive && !negative))
    return Unsupported(fmt::format(
        "'multipleOf': expected a factor up to {}, or at most {} multiples in the range",
        kMostRemainders, kMostNamed));
  const std::string size =
      SequenceRule({RemainderRules(factor, rules).Positive(), LiteralRule(zeros)});
  std::vector<std::string> ways;
  if ((!range.low || low <= 0) && (!range.high || high >= 0)) ways.emplace_back("\"0\"");
  if (positive) ways.push_back(size);
  if (negative) ways.push_back("\"-\" " + size);
  return ChoiceRule(ways);
}

}  // namespace latte
