// Padding and fields of braces; see text_format.h. Fields are written by format_spec.cc.
#include "src/jinja/format/text_format.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/jinja/format/format_spec.h"
#include "src/jinja/operators.h"

namespace latte::jinja {
namespace {

// Values for the fields of one format.
class FieldValues {
 public:
  FieldValues(const Arguments& arguments, Budget* budget)
      : arguments_(arguments), budget_(budget) {}

  // `field` is what stands before '!' and ':': a number or a name, and parts like ".a" and "[0]".
  Result<Value> Get(std::string_view field) {
    const size_t end = std::min(field.find_first_of(".["), field.size());
    LATTE_ASSIGN_OR_RETURN(Value value, First(field.substr(0, end)));
    for (size_t at = end; at < field.size();) {
      const bool item = field[at] == '[';
      const size_t stop = item ? field.find(']', at) : field.find_first_of(".[", at + 1);
      if (item && stop == std::string_view::npos) return InvalidArgument("a format lacks ']'");
      const size_t last = std::min(stop, field.size());
      const std::string name(field.substr(at + 1, last - at - 1));
      if (name.empty() ||
          (item && last + 1 < field.size() && field[last + 1] != '.' && field[last + 1] != '['))
        return InvalidArgument(fmt::format("the field '{}' of a format is wrong", field));
      if (item) {
        const std::optional<int64_t> number = Number(name);
        LATTE_ASSIGN_OR_RETURN(
            value, GetItem(value, number ? Value::Int(*number) : Value::String(name), budget_));
      } else {
        LATTE_ASSIGN_OR_RETURN(value, GetAttribute(value, name, budget_));
      }
      at = item ? last + 1 : last;
    }
    return value;
  }

 private:
  static std::optional<int64_t> Number(std::string_view digits) {
    int64_t number = 0;
    const char* const end = digits.data() + digits.size();
    if (!IsDigits(digits) || std::from_chars(digits.data(), end, number).ec != std::errc())
      return {};
    return number;
  }

  Result<Value> First(std::string_view name) {
    std::optional<int64_t> number = Number(name);
    if (name.empty() || number) {
      const char kind = name.empty() ? 'a' : 'g';
      if (numbering_ != 0 && numbering_ != kind)
        return InvalidArgument("a format numbers some of its fields, and others not");
      numbering_ = kind;
      if (name.empty()) number = next_++;
      if (*number < std::ssize(arguments_.positional))
        return arguments_.positional[static_cast<size_t>(*number)];
      return InvalidArgument(fmt::format("format() has no argument {}", *number));
    }
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    return InvalidArgument(fmt::format("format() has no argument '{}'", name));
  }

  const Arguments& arguments_;
  Budget* budget_;
  int64_t next_ = 0;
  char numbering_ = 0;  // 'a': automatic, 'g': given
};

// The text of one field, without its braces.
Result<Text> BraceField(std::string_view field, FieldValues& values, Budget* budget) {
  const size_t colon = std::min(field.find(':'), field.size());
  const size_t mark = std::min(field.substr(0, colon).find('!'), colon);
  LATTE_ASSIGN_OR_RETURN(Value value, values.Get(field.substr(0, mark)));
  if (mark < colon) {
    const std::string_view conversion = field.substr(mark + 1, colon - mark - 1);
    if (conversion != "r" && conversion != "s")
      return Unsupported(fmt::format("the conversion '!{}' is not supported", conversion));
    LATTE_ASSIGN_OR_RETURN(Text text,
                           conversion == "r" ? ReprText(value, budget) : Str(value, budget));
    value = Value::String(std::move(text));
  }
  if (colon + 1 >= field.size()) return Str(value, budget);
  LATTE_ASSIGN_OR_RETURN(const FormatSpec spec, ParseFormatSpec(field.substr(colon + 1)));
  return WriteField(value, spec, budget);
}

}  // namespace

Result<Value> FormatBraces(const Text& format, const Arguments& arguments, Budget* budget) {
  const std::string& bytes = format.bytes();
  Text out;
  FieldValues values(arguments, budget);
  for (size_t at = 0; at < bytes.size();) {
    const char c = bytes[at];
    if (c != '{' && c != '}') {
      const size_t end = std::min(bytes.find_first_of("{}", at), bytes.size());
      out.AppendRange(format, at, end);
      at = end;
    } else if (at + 1 < bytes.size() && bytes[at + 1] == c) {
      LATTE_RETURN_IF_ERROR(budget->Spend(1));
      out.AppendRange(format, at, at + 1);
      at += 2;
    } else {
      const size_t close = c == '{' ? bytes.find('}', at) : std::string::npos;
      if (close == std::string::npos) return InvalidArgument("a single brace in a format");
      const std::string_view field = std::string_view(bytes).substr(at + 1, close - at - 1);
      if (field.find('{') != std::string_view::npos)
        return Unsupported("a field inside a field of a format is not supported");
      LATTE_ASSIGN_OR_RETURN(const Text text, BraceField(field, values, budget));
      LATTE_RETURN_IF_ERROR(budget->SpendAppended(out.size(), out.size() + text.size()));
      out.Append(text);
      at = close + 1;
    }
  }
  LATTE_RETURN_IF_ERROR(budget->SpendString(out.size()));
  return Value::String(std::move(out));
}

Result<Value> Padded(const Text& text, int64_t width, Side side, std::string_view fill,
                     Budget* budget) {
  const int64_t missing = std::max<int64_t>(width - CodePoints(text.bytes()), 0);
  if (missing > budget->limits().string_bytes / std::ssize(fill))
    return Exhausted(fmt::format("a text of {} characters is too long", width));
  LATTE_RETURN_IF_ERROR(
      budget->SpendString(text.size() + static_cast<size_t>(missing) * fill.size()));
  const int64_t odd = side == Side::kCenter ? missing & width & 1 : 0;
  const int64_t left = side == Side::kLeft ? 0 : side == Side::kRight ? missing : missing / 2 + odd;
  LATTE_RETURN_IF_ERROR(budget->Spend(missing / 64));
  const auto copies = [&](int64_t count) {
    std::string out;
    out.reserve(static_cast<size_t>(count) * fill.size());
    for (int64_t i = 0; i < count; ++i) out += fill;
    return Text(std::move(out), true);
  };
  Text out = copies(left);
  out.Append(text);
  out.Append(copies(missing - left));
  return Value::String(std::move(out));
}

}  // namespace latte::jinja
