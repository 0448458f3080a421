// Writes values as text: as JSON, and as Python's str() and repr(), which a template uses when it
// prints or joins a value.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/jinja/json.h"
#include "src/jinja/value.h"
#include "src/text/unicode/unicode.h"

namespace latte::jinja {
namespace {

// str.isprintable for assigned characters, apart from oddities of the private planes. Controls,
// formats, separators other than the space, and private-use characters are escaped.
bool IsPrintable(char32_t c) {
  if (c == ' ') return true;
  if (c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD || IsWhiteSpace(c)) return false;
  constexpr std::pair<char32_t, char32_t> kHidden[] = {
      {0x600, 0x605},   {0x61C, 0x61C},   {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x180E, 0x180E},
      {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},   {0xE000, 0xF8FF},   {0xFEFF, 0xFEFF},
      {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE00FF}, {0xF0000, 0x10FFFF}};
  return std::none_of(std::begin(kHidden), std::end(kHidden),
                      [c](auto range) { return c >= range.first && c <= range.second; });
}

// "\x0a": the sign of an escape and that many hexadecimal digits.
void AppendHex(std::string_view sign, uint32_t c, int digits, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "{}{:0{}x}", sign, c, digits);
}

// Two styles: JSON, and the repr of Python. The depth of values bounds the recursion. A value may
// contain the same part many times, so each occurrence counts against the budget.
class Writer {
 public:
  Writer(const JsonStyle& style, bool json, Budget* budget, std::string* out)
      : style_(style), json_(json), budget_(budget), out_(out) {}

  Status Write(const Value& value, int level = 0) {
    if (value.Is(Kind::kList)) return WriteList(value.list(), level);
    if (value.Is(Kind::kDict)) return WriteDict(value.dict(), level);
    const size_t before = out_->size();
    if (value.Is(Kind::kString)) {
      LATTE_RETURN_IF_ERROR(Quote(value.bytes()));
    } else {
      LATTE_ASSIGN_OR_RETURN(const std::string text, TextOf(value));
      *out_ += text;
    }
    return Spend(before);
  }

 private:
  Status Spend(size_t before) { return budget_->SpendAppended(before, out_->size()); }

  // The text of a value that is neither a string nor a container.
  Result<std::string> TextOf(const Value& value) const {
    switch (value.kind()) {
      case Kind::kNone:
        return json_ ? "null" : "None";
      case Kind::kBool:
        if (json_) return value.boolean() ? "true" : "false";
        return value.boolean() ? "True" : "False";
      case Kind::kInt:
        return std::to_string(value.integer());
      case Kind::kFloat:
        return FloatText(value.number());
      default:
        break;
    }
    if (json_) return InvalidArgument(fmt::format("tojson cannot write '{}'", TypeName(value)));
    if (value.Is(Kind::kUndefined)) return "Undefined";
    return Unsupported(fmt::format("a '{}' cannot be printed", TypeName(value)));
  }

  std::string FloatText(double value) const {
    if (!json_ || std::isfinite(value)) return FloatRepr(value);
    return std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
  }

  Status Quote(std::string_view text) {
    const bool single = text.find('\'') == std::string_view::npos;
    const bool is_double = json_ || (!single && text.find('"') == std::string_view::npos);
    const char quote = is_double ? '"' : '\'';
    *out_ += quote;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = PartEnd(text, begin);
      LATTE_RETURN_IF_ERROR(budget_->CheckString(out_->size()));
      LATTE_RETURN_IF_ERROR(budget_->Spend(static_cast<int64_t>(end - begin) / 16));
      AppendEscaped(text.substr(begin, end - begin), quote);
      begin = end;
    }
    *out_ += quote;
    return {};
  }

  void AppendEscaped(std::string_view text, char quote) {
    constexpr std::string_view kFrom = "\\\n\r\t\f\b";
    constexpr std::string_view kTo = "\\nrtfb";
    constexpr size_t kOfPython = 4;  // Python has no names for the last two
    const std::string_view from = kFrom.substr(0, json_ ? kFrom.size() : kOfPython);
    for (size_t i = 0; i < text.size();) {
      const Utf8Step step = DecodeUtf8(text.substr(i));
      const char32_t c = step.code_point;
      const size_t which = c < 0x80 ? from.find(static_cast<char>(c)) : std::string_view::npos;
      if (which != std::string_view::npos)
        (*out_ += '\\') += kTo[which];
      else if (c == static_cast<char32_t>(quote))
        (*out_ += '\\') += quote;
      else if (json_ ? c >= 0x20 && (c <= 0x7E || !style_.ensure_ascii) : IsPrintable(c))
        out_->append(text.substr(i, static_cast<size_t>(step.bytes)));
      else
        AppendNumber(c);
      i += static_cast<size_t>(step.bytes);
    }
  }

  // JSON writes characters above 16 bits as two surrogates.
  void AppendNumber(char32_t c) {
    if (json_ && c >= 0x10000) {
      AppendHex("\\u", 0xD7C0 + (c >> 10), 4, out_);
      AppendHex("\\u", 0xDC00 + (c & 0x3FF), 4, out_);
    } else if (json_ || (c >= 0x100 && c < 0x10000)) {
      AppendHex("\\u", c, 4, out_);
    } else {
      AppendHex(c < 0x100 ? "\\x" : "\\U", c, c < 0x100 ? 2 : 8, out_);
    }
  }

  Status NewLine(int level) {
    if (!style_.pretty) return {};
    const size_t size = 1 + static_cast<size_t>(level) * style_.indent.size();
    LATTE_RETURN_IF_ERROR(budget_->SpendAppended(out_->size(), out_->size() + size));
    *out_ += '\n';
    for (int i = 0; i < level; ++i) *out_ += style_.indent;
    return {};
  }

  // What stands before item `i`.
  Status BeginItem(size_t i, char open, int level) {
    const size_t before = out_->size();
    if (i == 0)
      *out_ += open;
    else
      *out_ += style_.item_separator;
    LATTE_RETURN_IF_ERROR(Spend(before));
    return NewLine(level + 1);
  }

  Status WriteEmpty(std::string_view brackets) {
    *out_ += brackets;
    return budget_->Spend(1, 2);
  }

  Status WriteList(const List& list, int level) {
    const bool tuple = list.tuple && !json_;
    if (list.items.empty()) return WriteEmpty(tuple ? "()" : "[]");
    for (size_t i = 0; i < list.items.size(); ++i) {
      LATTE_RETURN_IF_ERROR(BeginItem(i, tuple ? '(' : '[', level));
      LATTE_RETURN_IF_ERROR(Write(list.items[i], level + 1));
    }
    LATTE_RETURN_IF_ERROR(NewLine(level));
    *out_ += !tuple ? "]" : list.items.size() == 1 ? ",)" : ")";
    return {};
  }

  // JSON's keys are strings: numbers and None become the text that they have as values.
  Status WriteKey(const Value& key, int level) {
    if (!json_) return Write(key, level);
    if (key.Is(Kind::kString)) return Quote(key.bytes());
    LATTE_ASSIGN_OR_RETURN(const std::string text, TextOf(key));
    return Quote(text);
  }

  Status WriteDict(const Dict& dict, int level) {
    if (dict.entries.empty()) return WriteEmpty("{}");
    // A total order of keys of different types, which Python does not have, would be our invention.
    const Value& first = dict.entries[dict.sorted.front()].key;
    const Value& last = dict.entries[dict.sorted.back()].key;
    if (style_.sort_keys && first.is_number() != last.is_number() && first.kind() != last.kind())
      return InvalidArgument("tojson: sort_keys needs keys of one type");
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      const Dict::Entry& entry = dict.entries[style_.sort_keys ? dict.sorted[i] : i];
      LATTE_RETURN_IF_ERROR(BeginItem(i, '{', level));
      const size_t before = out_->size();
      LATTE_RETURN_IF_ERROR(WriteKey(entry.key, level + 1));
      *out_ += style_.key_separator;
      LATTE_RETURN_IF_ERROR(Spend(before));
      LATTE_RETURN_IF_ERROR(Write(entry.value, level + 1));
    }
    LATTE_RETURN_IF_ERROR(NewLine(level));
    *out_ += '}';
    return {};
  }

  const JsonStyle& style_;
  bool json_;
  Budget* budget_;
  std::string* out_;
};

}  // namespace

Result<Text> Str(const Value& value, Budget* budget) {
  if (value.Is(Kind::kString)) return value.text();
  if (value.Is(Kind::kUndefined)) return Text();
  return ReprText(value, budget);
}

Result<Text> ReprText(const Value& value, Budget* budget) {
  std::string out;
  LATTE_RETURN_IF_ERROR(Writer({}, /*json=*/false, budget, &out).Write(value));
  // The template could have written the text of a number or a constant itself.
  const bool holds_text = value.Is(Kind::kString) || value.Is(Kind::kList) || value.Is(Kind::kDict);
  return Text(std::move(out), !holds_text);
}

Result<std::string> DumpJson(const Value& value, const JsonStyle& style, Budget* budget) {
  std::string out;
  LATTE_RETURN_IF_ERROR(Writer(style, /*json=*/true, budget, &out).Write(value));
  return out;
}

}  // namespace latte::jinja
