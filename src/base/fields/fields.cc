#include "src/base/fields/fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/base/fields/suggest.h"
#include "src/base/math.h"

namespace latte {
namespace {

// "0.5"; whole numbers without an exponent.
std::string NumberText(double number) {
  if (number == std::floor(number) && std::abs(number) < 1e18)
    return fmt::format("{}", static_cast<int64_t>(number));
  return fmt::format("{}", number);
}

bool Within(const FieldRange& range, double value) {  // false for NaN
  return (range.above_low ? value > range.low : value >= range.low) && value <= range.high;
}

bool Bounded(const FieldRange& range) {
  return std::isfinite(range.low) || std::isfinite(range.high);
}

template <class T>
Status CheckNumber(const Field& field, std::string_view name, T value) {
  const auto number = static_cast<double>(value);
  if (std::isnan(number) || !Within(field.range, number))
    return InvalidArgument(fmt::format("{}: expected {}, found {}", name, Expected(field), value));
  return {};
}

}  // namespace

std::string FlagNames(const Field& field) {
  if (field.flag == kNoName || field.flag == "MODEL") return "";
  if (!field.flag.empty()) return std::string(field.flag);
  return "--" + NameInMessages(field, '-');
}

std::string LongFlag(const Field& field) {
  const std::string names = FlagNames(field);
  return names.empty() ? "" : names.substr(names.find("--"));
}

std::string Variable(const Field& field) {
  std::string name = LongFlag(field);
  if (name.empty()) return "";
  name = name.substr(name.starts_with("--no-") ? 5 : 2);
  for (char& c : name) {
    if (c == '-') c = '_';
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return "LATTE_" + name;
}

std::string_view JsonKey(const Field& field) {
  if (field.json == kNoName) return "";
  return field.json.empty() ? field.name : field.json;
}

std::string Expected(const Field& field) {
  if (!field.expected.empty()) return std::string(field.expected);
  if (!field.choices.empty()) return std::string(field.choices);
  if (!Bounded(field.range)) return "";
  return fmt::format("a number in {}{}, {}]", field.range.above_low ? '(' : '[',
                     NumberText(field.range.low), NumberText(field.range.high));
}

std::vector<std::string_view> Choices(const Field& field) {
  std::vector<std::string_view> out;
  std::string_view rest = field.choices;
  while (!rest.empty()) {
    const size_t end = std::min({rest.find(", "), rest.find(" or "), rest.size()});
    out.push_back(rest.substr(0, end));
    rest.remove_prefix(end);
    rest.remove_prefix(rest.starts_with(", ") ? 2 : rest.starts_with(" or ") ? 4 : 0);
  }
  return out;
}

std::string NameInMessages(const Field& field, char separator) {
  std::string name(field.name);
  std::replace(name.begin(), name.end(), '_', separator);
  return name;
}

Status CheckField(const Field& field, std::string_view name, int64_t value) {
  LATTE_RETURN_IF_ERROR(CheckNumber(field, name, value));
  if (field.range.power_of_two && !IsPow2(value))
    return InvalidArgument(fmt::format("{}: expected a power of two, found {}", name, value));
  return {};
}

Status CheckField(const Field& field, std::string_view name, double value) {
  return CheckNumber(field, name, value);
}

Status CheckField(const Field& field, std::string_view name, const std::string& value) {
  if (field.choices.empty() || (value.empty() && field.may_be_empty)) return {};
  const std::vector<std::string_view> choices = Choices(field);
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return {};
  const std::vector<std::string> known(choices.begin(), choices.end());
  return InvalidArgument(fmt::format("{}: expected {}, found '{}'{}", name, field.choices, value,
                                     DidYouMean(value, known)));
}

}  // namespace latte
