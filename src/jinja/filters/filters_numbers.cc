// int, float, abs and round; see filters.h.
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "src/jinja/arithmetic.h"
#include "src/jinja/filters/filters.h"

namespace latte::jinja {
namespace {

// Without the underscores that stand between two digits.
std::string WithoutUnderscores(const std::string& text, bool letters) {
  const auto is_digit = [&](size_t i) {
    const auto c = i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
    return letters ? std::isalnum(c) != 0 : std::isdigit(c) != 0;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_' || i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) out += text[i];
  return out;
}

// Python's float() of a text: nothing for a text that is no number.
std::optional<double> ReadFloat(const Text& text) {
  const Text stripped = Strip(text, {}, true, true);
  std::string digits = WithoutUnderscores(stripped.bytes(), false);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.erase(0, 1);
  if (digits.find('(') != std::string::npos) return {};  // from_chars reads "nan(1)"
  double real = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, real);
  const bool range = parsed.ec == std::errc::result_out_of_range;
  if (digits.empty() || (parsed.ec != std::errc() && !range) || parsed.ptr != end) return {};
  if (!range) return real;
  // Out of range is infinity or zero, whichever is nearer.
  const size_t power = digits.find_first_of("eE");
  const bool tiny = power != std::string::npos
                        ? digits[power + 1] == '-'
                        : digits.find_first_of("123456789") > digits.find('.');
  return std::copysign(tiny ? 0.0 : HUGE_VAL, digits[0] == '-' ? -1.0 : 1.0);
}

// Python's int() of a text in a base from 2 to 36: kInvalidArgument beyond 64 bits.
Result<std::optional<int64_t>> ReadInteger(const Text& text, int base) {
  const Text stripped = Strip(text, {}, true, true);
  std::string digits = stripped.bytes();
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  const char prefix = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '\0';
  if (prefix && digits.size() > 2 && digits[0] == '0' && (digits[1] | 0x20) == prefix)
    digits.erase(0, 2);
  digits = WithoutUnderscores(digits, true);
  if (digits.empty() || digits[0] == '-') return std::optional<int64_t>();
  int64_t number = 0;
  const std::string signed_digits = negative ? fmt::format("-{}", digits) : digits;
  const char* const end = signed_digits.data() + signed_digits.size();
  const auto parsed = std::from_chars(signed_digits.data(), end, number, base);
  if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument)
    return std::optional<int64_t>();
  if (parsed.ec != std::errc()) return InvalidArgument("the number does not fit in 64 bits");
  return std::optional<int64_t>(number);
}

Result<Value> ToInt(const std::string&, const Value& input, const Arguments& arguments,
                    Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"default", "base"}));
  LATTE_ASSIGN_OR_RETURN(const int64_t base, IntegerArgument(a[1], 10, "the base"));
  if (base < 2 || base > 36) return InvalidArgument("int: expected a base from 2 to 36");
  const Value fallback = a[0].Is(Kind::kUndefined) ? Value::Int(0) : a[0];
  if (input.is_integer()) return Value::Int(input.integer());
  double real = 0;
  if (input.Is(Kind::kFloat)) {
    real = input.number();
    if (std::isnan(real)) return fallback;
  } else if (input.Is(Kind::kString)) {
    LATTE_RETURN_IF_ERROR(budget->Spend(1 + static_cast<int64_t>(input.text().size()) / 8));
    LATTE_ASSIGN_OR_RETURN(const std::optional<int64_t> whole,
                           ReadInteger(input.text(), static_cast<int>(base)));
    if (whole) return Value::Int(*whole);
    const std::optional<double> read = ReadFloat(input.text());
    if (!read || !std::isfinite(*read)) return fallback;
    real = *read;
  } else if (input.Is(Kind::kUndefined)) {
    return InvalidArgument(input.undefined());
  } else {
    return fallback;
  }
  LATTE_ASSIGN_OR_RETURN(const int64_t whole, WholePart(real));
  return Value::Int(whole);
}

Result<Value> ToFloat(const std::string&, const Value& input, const Arguments& arguments,
                      Budget* budget) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"default"}));
  const Value fallback = a[0].Is(Kind::kUndefined) ? Value::Float(0) : a[0];
  if (input.is_number()) return Value::Float(input.number());
  if (input.Is(Kind::kUndefined)) return InvalidArgument(input.undefined());
  if (!input.Is(Kind::kString)) return fallback;
  LATTE_RETURN_IF_ERROR(budget->Spend(1 + static_cast<int64_t>(input.text().size()) / 8));
  const std::optional<double> read = ReadFloat(input.text());
  return read ? Value::Float(*read) : fallback;
}

Result<Value> Absolute(const std::string&, const Value& input, const Arguments& arguments,
                       Budget*) {
  LATTE_RETURN_IF_ERROR(Bind(arguments, {}));
  if (!input.is_number()) return InvalidArgument("'abs' needs a number");
  if (input.Is(Kind::kFloat)) return Value::Float(std::fabs(input.number()));
  return input.integer() < 0 ? Arithmetic("-", Value::Int(0), input) : Value::Int(input.integer());
}

// round(precision, "common"), or "ceil" or "floor", which give a float.
Result<Value> Round(const std::string&, const Value& input, const Arguments& arguments, Budget*) {
  LATTE_ASSIGN_OR_RETURN(const Values a, Bind(arguments, {"precision", "method"}));
  LATTE_ASSIGN_OR_RETURN(const int64_t digits, IntegerArgument(a[0], 0, "the precision"));
  std::string method = "common";
  if (!a[1].Is(Kind::kUndefined)) {
    LATTE_ASSIGN_OR_RETURN(method, StringArgument(a[1], "the method of 'round'"));
  }
  if (!input.is_number())
    return InvalidArgument(fmt::format("'round' needs a number, not '{}'", TypeName(input)));
  if (method == "common") return RoundNumber(input, digits);
  if (method != "ceil" && method != "floor")
    return InvalidArgument(
        fmt::format("'round': expected the method common, ceil or floor, found '{}'", method));
  // An integer has no decimals to round; its scaled form could be beyond 64 bits.
  if (input.is_integer() && digits >= 0) return Arithmetic("/", input, Value::Int(1));
  LATTE_ASSIGN_OR_RETURN(const Value unit, Arithmetic("**", Value::Int(10), Value::Int(digits)));
  LATTE_ASSIGN_OR_RETURN(Value scaled, Arithmetic("*", input, unit));
  if (scaled.Is(Kind::kFloat)) {
    const double number =
        method == "ceil" ? std::ceil(scaled.number()) : std::floor(scaled.number());
    if (!std::isfinite(number)) return InvalidArgument("'round' of a number that is not finite");
    // A larger float is the integer that Python makes of it.
    const bool small = std::fabs(number) < 0x1p53;
    scaled = small ? Value::Int(static_cast<int64_t>(number)) : Value::Float(number);
  }
  return Arithmetic("/", scaled, unit);
}

constexpr FilterRow kNumberFilters[] = {
    {"int", ToInt},
    {"float", ToFloat},
    {"abs", Absolute},
    {"round", Round},
};

}  // namespace

std::span<const FilterRow> NumberFilters() { return kNumberFilters; }

}  // namespace latte::jinja
