// Formats with '%'; see text_format.h.
#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/jinja/arithmetic.h"
#include "src/jinja/format/format_spec.h"
#include "src/jinja/format/text_format.h"
#include "src/text/unicode/unicode.h"

namespace latte::jinja {
namespace {

// Reads the conversions of one format and takes their values.
class PercentReader {
 public:
  PercentReader(const Value& arguments, Budget* budget) : arguments_(arguments), budget_(budget) {}

  void MoveTo(std::string_view rest) { rest_ = rest; }
  std::string_view rest() const { return rest_; }

  // Reads "%…" at the front of the rest.
  Result<Text> Field() {
    rest_.remove_prefix(1);
    FormatSpec spec;
    spec.percent = true;
    LATTE_ASSIGN_OR_RETURN(const std::optional<Value> named, Name());
    const bool zeros = Flags(&spec);
    LATTE_ASSIGN_OR_RETURN(spec.width, Size(&spec));
    spec.width = std::max<int64_t>(spec.width, 0);
    if (rest_.starts_with('.')) {
      rest_.remove_prefix(1);
      LATTE_ASSIGN_OR_RETURN(spec.precision, Size(nullptr));
      spec.precision = std::max<int64_t>(spec.precision, 0);
    }
    while (!rest_.empty() && std::string_view("hlL").find(rest_[0]) != std::string_view::npos)
      rest_.remove_prefix(1);
    if (rest_.empty()) return InvalidArgument("a format ends inside a conversion");
    spec.type = rest_[0];
    rest_.remove_prefix(1);
    if (spec.type == '%') return Text("%", true);
    if (named) return Convert(*named, spec, zeros);
    LATTE_ASSIGN_OR_RETURN(const Value value, Take());
    return Convert(value, spec, zeros);
  }

  Status End() const {
    const bool all = is_tuple()
                         ? next_ == arguments_.list().items.size()
                         : next_ > 0 || arguments_.Is(Kind::kDict) || arguments_.Is(Kind::kList);
    if (all) return {};
    return InvalidArgument("'%': more values than the format takes");
  }

 private:
  bool is_tuple() const { return arguments_.Is(Kind::kList) && arguments_.list().tuple; }

  Result<Value> Take() {
    const size_t at = next_++;
    if (is_tuple() ? at < arguments_.list().items.size() : at == 0)
      return is_tuple() ? arguments_.list().items[at] : arguments_;
    return InvalidArgument("'%': fewer values than the format takes");
  }

  Result<std::optional<Value>> Name() {
    if (!rest_.starts_with('(')) return std::optional<Value>();
    const size_t close = rest_.find(')');
    if (close == std::string_view::npos) return InvalidArgument("a format lacks ')'");
    const std::string_view name = rest_.substr(1, close - 1);
    if (!arguments_.Is(Kind::kDict))
      return InvalidArgument("'%': a format with names needs a dict");
    const Value* const found = arguments_.dict().Find(name);
    if (!found) return InvalidArgument(fmt::format("'%': no value is named '{}'", name));
    rest_.remove_prefix(close + 1);
    next_ = 1;  // the dict is no value of its own any more
    return std::optional<Value>(*found);
  }

  // Whether the number is filled with zeros.
  bool Flags(FormatSpec* spec) {
    bool zeros = false;
    for (; !rest_.empty(); rest_.remove_prefix(1)) {
      const char c = rest_[0];
      if (c == '-')
        spec->align = '<';
      else if (c == '+' || (c == ' ' && spec->sign != '+'))
        spec->sign = c;
      else if (c == '#')
        spec->alternate = true;
      else if (c == '0')
        zeros = true;
      else if (c != ' ')
        break;
    }
    return zeros && spec->align == 0;
  }

  // A number or '*'; a negative width, which `spec` is given for, means the left side.
  Result<int64_t> Size(FormatSpec* spec) {
    int64_t size = 0;
    if (rest_.starts_with('*')) {
      rest_.remove_prefix(1);
      LATTE_ASSIGN_OR_RETURN(const Value value, Take());
      if (!value.is_integer()) return InvalidArgument("'%': '*' needs an integer");
      size = std::clamp<int64_t>(value.integer(), -budget_->limits().string_bytes - 1,
                                 budget_->limits().string_bytes + 1);
      if (spec && size < 0) {
        spec->align = '<';
        size = -size;
      }
      return size;
    }
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
    if (rest_.empty() || !IsDigit(rest_[0])) return int64_t{0};
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return error == std::errc() ? std::min(size, budget_->limits().string_bytes + 1)
                                : budget_->limits().string_bytes + 1;
  }

  Result<Text> Convert(const Value& value, FormatSpec spec, bool zeros) {
    switch (spec.type) {
      case 's':
      case 'r': {
        LATTE_ASSIGN_OR_RETURN(Text text,
                               spec.type == 's' ? Str(value, budget_) : ReprText(value, budget_));
        spec.type = 's';
        return WriteField(Value::String(std::move(text)), spec, budget_);
      }
      case 'c':
        return Character(value, spec);
      case 'd':
      case 'i':
      case 'u':
        spec.type = 'd';
        if (value.Is(Kind::kFloat)) {
          LATTE_ASSIGN_OR_RETURN(const int64_t whole, WholePart(value.number()));
          return Number(Value::Int(whole), spec, zeros);
        }
        return Number(value, spec, zeros);
      default:
        if (std::string_view("xXoeEfFgG").find(spec.type) == std::string_view::npos)
          return Unsupported(fmt::format("the conversion '%{}' is not supported",
                                         spec.type > ' ' && spec.type < 127 ? spec.type : '?'));
        return Number(value, spec, zeros);
    }
  }

  Result<Text> Number(const Value& value, FormatSpec spec, bool zeros) {
    if (zeros) {
      spec.align = '=';
      spec.fill.assign(1, '0');
    }
    return WriteField(value, spec, budget_);
  }

  Result<Text> Character(const Value& value, FormatSpec spec) {
    std::string text;
    if (value.is_integer() && value.integer() >= 0 && value.integer() <= 0x10FFFF &&
        (value.integer() < 0xD800 || value.integer() > 0xDFFF))
      AppendUtf8(static_cast<char32_t>(value.integer()), &text);
    else if (!value.Is(Kind::kString) || CodePoints(value.bytes()) != 1)
      return InvalidArgument("'%c' needs one character");
    spec.type = 's';
    spec.precision = -1;
    return WriteField(text.empty() ? value : Value::String(text), spec, budget_);
  }

  std::string_view rest_;
  const Value& arguments_;
  Budget* budget_;
  size_t next_ = 0;
};

}  // namespace

Result<Value> FormatPercent(const Text& format, const Value& arguments, Budget* budget) {
  const std::string_view bytes = format.bytes();
  PercentReader reader(arguments, budget);
  Text out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t mark = std::min(bytes.find('%', at), bytes.size());
    out.AppendRange(format, at, mark);
    at = mark;
    if (at == bytes.size()) break;
    reader.MoveTo(bytes.substr(at));
    LATTE_ASSIGN_OR_RETURN(const Text text, reader.Field());
    LATTE_RETURN_IF_ERROR(budget->SpendAppended(out.size(), out.size() + text.size()));
    out.Append(text);
    at = bytes.size() - reader.rest().size();
  }
  LATTE_RETURN_IF_ERROR(reader.End());
  LATTE_RETURN_IF_ERROR(budget->SpendString(out.size()));
  return Value::String(std::move(out));
}

}  // namespace latte::jinja
