#include "src/jinja/arithmetic.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <string>

#include <fmt/format.h>

namespace latte::jinja {
namespace {

__extension__ typedef unsigned __int128 Wide;

tl::unexpected<Error> Overflow() { return InvalidArgument("the result does not fit in 64 bits"); }
tl::unexpected<Error> DivisionByZero() { return InvalidArgument("division by zero"); }

uint64_t Magnitude(int64_t i) {
  return i < 0 ? ~static_cast<uint64_t>(i) + 1 : static_cast<uint64_t>(i);
}

Result<Value> FloorDivide(bool quotient, int64_t a, int64_t b) {
  if (b == 0) return DivisionByZero();
  if (b == -1) {  // the only quotient that can overflow
    int64_t out = 0;
    if (quotient && __builtin_sub_overflow(int64_t{0}, a, &out)) return Overflow();
    return Value::Int(out);
  }
  // Python rounds towards minus infinity, C++ towards zero.
  const int64_t rest = a % b;
  const bool below = rest != 0 && (rest < 0) != (b < 0);
  return Value::Int(quotient ? a / b - (below ? 1 : 0) : rest + (below ? b : 0));
}

// The double that is nearest to a / b, also where a and b themselves are no doubles.
Result<Value> DivideIntegers(int64_t a, int64_t b) {
  if (b == 0) return DivisionByZero();
  constexpr uint64_t kExact = uint64_t{1} << 53;
  const uint64_t x = Magnitude(a);
  const uint64_t y = Magnitude(b);
  if (x <= kExact && y <= kExact)
    return Value::Float(static_cast<double>(a) / static_cast<double>(b));
  // Two more bits than a double has, and the last one tells whether digits follow: one rounding.
  const auto width = [](uint64_t n) { return static_cast<int>(std::bit_width(n)); };
  const int shift = std::max(0, 55 - width(x) + width(y));
  const Wide shifted = static_cast<Wide>(x) << shift;
  const auto digits = static_cast<uint64_t>(shifted / y);
  const uint64_t more = shifted % y != 0 ? 1 : 0;
  const double size = std::ldexp(static_cast<double>(digits | more), -shift);
  return Value::Float((a < 0) != (b < 0) ? -size : size);
}

// By repeated squaring; overflow ends it after at most 63 steps.
Result<Value> IntegerPower(int64_t base, int64_t exponent) {
  int64_t out = 1;
  while (exponent > 0) {
    if (exponent % 2 != 0 && __builtin_mul_overflow(out, base, &out)) return Overflow();
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return Overflow();
  }
  return Value::Int(out);
}

Result<Value> FloatPower(double a, double b) {
  if (a == 0 && b < 0 && std::isfinite(b))
    return InvalidArgument("zero cannot be raised to a negative power");
  const bool finite = std::isfinite(a) && std::isfinite(b);
  if (finite && a < 0 && b != std::floor(b))
    return InvalidArgument("a fractional power of a negative number is no real number");
  const double out = std::pow(a, b);
  if (finite && std::isinf(out)) return InvalidArgument("the power is beyond the range of a float");
  return Value::Float(out);
}

Result<Value> Integers(std::string_view op, int64_t a, int64_t b) {
  int64_t out = 0;
  bool overflow = false;
  if (op == "+")
    overflow = __builtin_add_overflow(a, b, &out);
  else if (op == "-")
    overflow = __builtin_sub_overflow(a, b, &out);
  else if (op == "*")
    overflow = __builtin_mul_overflow(a, b, &out);
  else if (op == "/")
    return DivideIntegers(a, b);
  else if (op == "**")
    return b < 0 ? FloatPower(static_cast<double>(a), static_cast<double>(b)) : IntegerPower(a, b);
  else
    return FloorDivide(op == "//", a, b);
  if (overflow) return Overflow();
  return Value::Int(out);
}

Result<Value> Floats(std::string_view op, double a, double b) {
  if (op == "+") return Value::Float(a + b);
  if (op == "-") return Value::Float(a - b);
  if (op == "*") return Value::Float(a * b);
  if (op == "**") return FloatPower(a, b);
  if (b == 0) return DivisionByZero();
  if (op == "/") return Value::Float(a / b);
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(0.0, b);
  } else if ((rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (op == "%") return Value::Float(rest);
  if (quotient == 0) return Value::Float(std::copysign(0.0, a / b));
  const double whole = std::floor(quotient);
  return Value::Float(quotient - whole > 0.5 ? whole + 1 : whole);
}

// Rounds to a multiple of ten to the power of `zeros`, the even one of two.
Result<Value> RoundInteger(int64_t number, int64_t zeros) {
  if (zeros > 19) return Value::Int(0);
  Wide unit = 1;
  for (int64_t i = 0; i < zeros; ++i) unit *= 10;
  const Wide size = Magnitude(number);
  const Wide rest = size % unit;
  const bool odd = size / unit % 2 != 0;
  const bool up = rest * 2 > unit || (rest * 2 == unit && odd);
  const Wide rounded = size - rest + (up ? unit : 0);
  if (rounded > (Wide{1} << 63) - (number < 0 ? 0 : 1)) return Overflow();
  const auto bits = static_cast<uint64_t>(rounded);
  return Value::Int(static_cast<int64_t>(number < 0 ? ~bits + 1 : bits));
}

// `digits` of an integer, rounded to a multiple of ten to the power of `zeros`; `more` tells
// whether a fraction follows them.
std::string RoundDigits(std::string digits, size_t zeros, bool more) {
  if (zeros > digits.size()) return "0";
  std::string kept(1, '0');
  kept += digits.substr(0, digits.size() - zeros);
  const std::string cut = digits.substr(digits.size() - zeros);
  const bool tie = cut[0] == '5' && cut.find_first_not_of('0', 1) == std::string::npos && !more;
  const bool up = tie ? (kept.back() - '0') % 2 != 0 : cut[0] >= '5';
  size_t at = kept.size() - 1;
  for (; up && kept[at] == '9'; --at) kept[at] = '0';  // ends at the zero in front
  if (up) ++kept[at];
  return fmt::format("{}e{}", kept, zeros);
}

// By way of the decimal digits, because to_chars rounds the exact value.
Result<Value> RoundFloat(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 323) return Value::Float(number);
  const double size = std::fabs(number);
  char buffer[1024];
  const auto written = [&](double value, int64_t decimals) {
    char* const end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                    std::chars_format::fixed, static_cast<int>(decimals))
                          .ptr;
    return std::string(buffer, end);
  };
  const std::string text = digits >= 0
                               ? written(size, digits)
                               : RoundDigits(written(std::trunc(size), 0),
                                             static_cast<size_t>(-std::max<int64_t>(digits, -400)),
                                             size != std::trunc(size));
  double out = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), out).ec != std::errc())
    return InvalidArgument("the rounded number is beyond the range of a float");
  return Value::Float(std::copysign(out, number));
}

}  // namespace

Result<Value> Arithmetic(std::string_view op, const Value& a, const Value& b) {
  if (a.is_integer() && b.is_integer()) return Integers(op, a.integer(), b.integer());
  return Floats(op, a.number(), b.number());
}

Result<Value> RoundNumber(const Value& number, int64_t digits) {
  if (number.Is(Kind::kFloat)) return RoundFloat(number.number(), digits);
  // The smallest integer has no opposite.
  if (digits >= 0) return Value::Int(number.integer());
  return RoundInteger(number.integer(), std::max<int64_t>(digits, -20) * -1);
}

Result<int64_t> WholePart(double number) {
  if (!(number >= -0x1p63 && number < 0x1p63)) {
    if (std::isfinite(number)) return Overflow();
    return InvalidArgument(fmt::format("{} is no integer", FloatRepr(number)));
  }
  return static_cast<int64_t>(number);
}

}  // namespace latte::jinja
