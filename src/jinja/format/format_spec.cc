#include "src/jinja/format/format_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/jinja/arithmetic.h"
#include "src/jinja/format/text_format.h"
#include "src/text/unicode/unicode.h"

namespace latte::jinja {
namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 31;  // as Python's; the budget is smaller

bool IsAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

// Reads a number at the front of `text`; -1 if there is none.
int64_t TakeNumber(std::string_view& text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || !IsDigit(text[0])) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc() ? number : kMaxWidth;
}

bool TakeChar(std::string_view& text, std::string_view chars, char* out) {
  if (text.empty() || chars.find(text[0]) == std::string_view::npos) return false;
  *out = text[0];
  text.remove_prefix(1);
  return true;
}

// A number in three number, between which padding may come.
struct SplitNumber {
  std::string sign;
  std::string digits;  // the integer digits
  std::string rest;    // from the decimal point on
};

std::string Grouped(const std::string& digits, char separator, size_t group) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (separator != 0 && i > 0 && (digits.size() - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out;
}

std::string SignOf(bool negative, const FormatSpec& spec) {
  return negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string DigitsOf(uint64_t size, char type) {
  switch (type) {
    case 'x':
      return fmt::format("{:x}", size);
    case 'X':
      return fmt::format("{:X}", size);
    case 'o':
      return fmt::format("{:o}", size);
    case 'b':
      return fmt::format("{:b}", size);
    default:
      return fmt::format("{}", size);
  }
}

SplitNumber SplitInteger(int64_t number, const FormatSpec& spec) {
  const char type = spec.type;
  const uint64_t bits = static_cast<uint64_t>(number);
  SplitNumber out = {SignOf(number < 0, spec), DigitsOf(number < 0 ? ~bits + 1 : bits, type), ""};
  if (spec.precision > std::ssize(out.digits))
    out.digits.insert(0, static_cast<size_t>(spec.precision) - out.digits.size(), '0');
  if (spec.alternate && type != 'd' && type != 0) (out.sign += '0') += type;
  return out;
}

Result<SplitNumber> SplitFloat(double number, const FormatSpec& spec, Budget* budget) {
  const char lower =
      spec.type >= 'A' && spec.type <= 'Z' ? static_cast<char>(spec.type + 32) : spec.type;
  if (spec.alternate) return Unsupported("'#' for a float is not supported");
  std::string text;
  const double size = std::fabs(number) * (lower == '%' ? 100 : 1);
  if (lower == 0) {
    if (spec.precision >= 0)
      return Unsupported("a precision without a type like 'f' is not supported for a float");
    text = FloatRepr(size);
  } else {
    const int64_t precision = spec.precision < 0 ? 6 : spec.precision;
    LATTE_RETURN_IF_ERROR(budget->SpendString(static_cast<size_t>(precision) + 400));
    text.resize(static_cast<size_t>(precision) + 400);
    const auto form = lower == 'e'   ? std::chars_format::scientific
                      : lower == 'g' ? std::chars_format::general
                                     : std::chars_format::fixed;
    const auto written = std::to_chars(text.data(), text.data() + text.size(), size, form,
                                       static_cast<int>(precision));
    text.resize(static_cast<size_t>(written.ptr - text.data()));
  }
  if (lower == '%') text += '%';
  if (lower != spec.type)
    for (char& c : text)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  const size_t end = std::min(text.find_first_not_of(kDigits), text.size());
  return SplitNumber{SignOf(std::signbit(number) && !std::isnan(number), spec), text.substr(0, end),
                     text.substr(end)};
}

Result<Text> PadNumber(SplitNumber number, const FormatSpec& spec, Budget* budget) {
  const size_t group =
      spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b' ? 4 : 3;
  LATTE_RETURN_IF_ERROR(budget->SpendString(static_cast<size_t>(spec.width)));
  std::string digits = Grouped(number.digits, spec.grouping, group);
  const bool inside = spec.align == '=';
  if (inside && spec.fill == "0") {
    const auto room =
        spec.width - std::ssize(number.sign) - std::ssize(number.rest) - std::ssize(digits);
    if (room > 0 && spec.grouping == 0) digits.insert(0, static_cast<size_t>(room), '0');
    while (spec.grouping != 0 &&
           std::ssize(number.sign) + std::ssize(digits) + std::ssize(number.rest) < spec.width) {
      // Zeros are grouped too, so a separator may need one more of them. Few: widths are small.
      LATTE_RETURN_IF_ERROR(budget->Spend(1 + std::ssize(digits) / 16));
      digits = Grouped(number.digits.insert(0, "0"), spec.grouping, group);
    }
    return Text(number.sign + digits + number.rest, true);
  }
  const Text text((inside ? "" : number.sign) + digits + number.rest, true);
  const Side side = spec.align == '<'   ? Side::kLeft
                    : spec.align == '^' ? Side::kMiddle
                                        : Side::kRight;
  const int64_t width = spec.width - (inside ? std::ssize(number.sign) : 0);
  LATTE_ASSIGN_OR_RETURN(const Value padded, Padded(text, width, side, spec.fill, budget));
  Text out(inside ? number.sign : std::string(), true);
  out.Append(padded.text());
  return out;
}

Result<Text> WriteString(const Text& text, const FormatSpec& spec, Budget* budget) {
  if (!spec.percent && (spec.align == '=' || spec.sign != '-' || spec.grouping || spec.alternate))
    return InvalidArgument("a format for numbers is given a string");
  const int64_t length = CodePoints(text.bytes());
  LATTE_RETURN_IF_ERROR(budget->SpendString(text.size()));
  const bool cut = spec.precision >= 0 && spec.precision < length;
  const Text shown = cut ? text.Slice(0, CodePointOffset(text.bytes(), spec.precision)) : text;
  const char align = spec.align == 0 ? (spec.percent ? '>' : '<') : spec.align;
  const Side side = align == '<' ? Side::kLeft : align == '^' ? Side::kMiddle : Side::kRight;
  LATTE_ASSIGN_OR_RETURN(const Value padded, Padded(shown, spec.width, side, spec.fill, budget));
  return padded.text();
}

tl::unexpected<Error> WrongKind(const Value& value, char type) {
  return InvalidArgument(fmt::format("a format of type '{}' cannot take '{}'",
                                     type == 0 ? 's' : type, TypeName(value)));
}

}  // namespace

Result<FormatSpec> ParseFormatSpec(std::string_view text) {
  FormatSpec out;
  std::string_view rest = text;
  const auto first = static_cast<size_t>(DecodeUtf8(rest).bytes);
  const bool filled = first < rest.size() && IsAlign(rest[first]);
  if (filled) {
    out.fill = rest.substr(0, first);
    rest.remove_prefix(first);
  }
  TakeChar(rest, "<>^=", &out.align);
  TakeChar(rest, "+- ", &out.sign);
  char found = 0;
  out.alternate = TakeChar(rest, "#", &found);
  if (TakeChar(rest, "0", &found)) {
    if (!filled) out.fill.assign(1, '0');
    if (out.align == 0) out.align = '=';
  }
  out.width = std::max<int64_t>(TakeNumber(rest), 0);
  TakeChar(rest, ",_", &out.grouping);
  if (TakeChar(rest, ".", &found)) {
    out.precision = TakeNumber(rest);
    if (out.precision < 0) return InvalidArgument("a format lacks the precision after '.'");
  }
  TakeChar(rest, "sdxXobeEfFgG%", &out.type);
  if (!rest.empty() || out.width >= kMaxWidth || out.precision >= kMaxWidth)
    return InvalidArgument(fmt::format("the format '{}' is wrong or not supported", text));
  if (out.grouping == ',' && std::string_view("xXob").find(out.type) != std::string_view::npos)
    return InvalidArgument("',' is for decimal numbers");
  return out;
}

Result<Text> WriteField(const Value& value, const FormatSpec& spec, Budget* budget) {
  const bool integer_type =
      spec.type != 0 && std::string_view("dxXob").find(spec.type) != std::string_view::npos;
  const bool float_type =
      spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (spec.type == 's' || (spec.type == 0 && value.Is(Kind::kString))) {
    if (!value.Is(Kind::kString)) return WrongKind(value, spec.type);
    FormatSpec text = spec;
    // A zero before the width fills strings on the right side.
    if (!spec.percent && spec.align == '=' && spec.fill == "0") text.align = '<';
    return WriteString(value.text(), text, budget);
  }
  if (!value.is_number() || (integer_type && !value.is_integer()))
    return WrongKind(value, spec.type);
  if (value.is_integer() && !float_type) {
    if (spec.precision >= 0 && !spec.percent)
      return InvalidArgument("a format of an integer has a precision");
    LATTE_RETURN_IF_ERROR(
        budget->SpendString(static_cast<size_t>(std::max<int64_t>(spec.precision, 0))));
    return PadNumber(SplitInteger(value.integer(), spec), spec, budget);
  }
  LATTE_ASSIGN_OR_RETURN(SplitNumber number, SplitFloat(value.number(), spec, budget));
  return PadNumber(std::move(number), spec, budget);
}

}  // namespace latte::jinja
