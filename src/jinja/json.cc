#include "src/jinja/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/text/unicode/unicode.h"

namespace latte::jinja {
namespace {

constexpr int kMaxJsonDepth = 64;
constexpr int64_t kMaxValues = 1'000'000;

// Recursive descent; the depth is checked before each descent.
class JsonParser {
 public:
  JsonParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Result<Value> Parse() {
    LATTE_ASSIGN_OR_RETURN(Value value, ParseValue(0));
    SkipSpace();
    if (at_ < text_.size()) return Bad("end of text");
    return value;
  }

 private:
  tl::unexpected<Error> Bad(std::string_view expected) const {
    return InvalidArgument(
        fmt::format("{}: expected {} at byte {} of the JSON text", where_, expected, at_));
  }

  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) < 4) ++at_;
  }
  bool Skip(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  Result<Value> ParseValue(int depth) {
    if (depth > kMaxJsonDepth) return Bad(fmt::format("at most {} levels", kMaxJsonDepth));
    if (++values_ > kMaxValues) return Bad(fmt::format("at most {} values", kMaxValues));
    SkipSpace();
    if (Skip("{")) return ParseObject(depth);
    if (Skip("[")) return ParseArray(depth);
    if (Skip("true")) return Value::Bool(true);
    if (Skip("false")) return Value::Bool(false);
    if (Skip("null")) return Value();
    if (at_ < text_.size() && text_[at_] == '"') {
      LATTE_ASSIGN_OR_RETURN(std::string string, ParseString());
      return Value::String(UserText(string));
    }
    for (const std::string_view number : {"NaN", "Infinity", "-Infinity"})
      if (text_.substr(at_).starts_with(number))
        return Bad(fmt::format("null or a number that JSON has, not {},", number));
    return ParseNumber();
  }

  Result<Value> ParseObject(int depth) {
    std::vector<Dict::Entry> entries;
    SkipSpace();
    if (Skip("}")) return MakeDict({});
    while (true) {
      SkipSpace();
      LATTE_ASSIGN_OR_RETURN(std::string key, ParseString());
      SkipSpace();
      if (!Skip(":")) return Bad("':'");
      LATTE_ASSIGN_OR_RETURN(Value value, ParseValue(depth + 1));
      entries.push_back({UserText(key), std::move(value)});
      SkipSpace();
      if (Skip("}")) return MakeDict(std::move(entries));
      if (!Skip(",")) return Bad("',' or '}'");
    }
  }

  Result<Value> ParseArray(int depth) {
    std::vector<Value> items;
    SkipSpace();
    if (Skip("]")) return MakeList({}, false, true);
    while (true) {
      LATTE_ASSIGN_OR_RETURN(Value value, ParseValue(depth + 1));
      items.push_back(std::move(value));
      SkipSpace();
      if (Skip("]")) return MakeList(std::move(items), false, true);
      if (!Skip(",")) return Bad("',' or ']'");
    }
  }

  Result<Value> ParseNumber() {
    const size_t begin = at_;
    const auto digits = [this] {
      const size_t from = at_;
      while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
      return at_ > from;
    };
    Skip("-");
    if (!Skip("0") && !digits()) return Bad("a value");
    bool is_float = false;
    if (Skip(".")) {
      is_float = true;
      if (!digits()) return Bad("a digit");
    }
    if (Skip("e") || Skip("E")) {
      is_float = true;
      if (!Skip("+")) Skip("-");
      if (!digits()) return Bad("a digit");
    }
    const char* const first = text_.data() + begin;
    const char* const last = text_.data() + at_;
    int64_t integer = 0;
    double real = 0;
    if (is_float) {
      // Python reads a number out of range as infinity or zero. Such a number has no place in a
      // prompt.
      if (std::from_chars(first, last, real).ec != std::errc()) return Bad("a smaller number");
      return Value::Float(real);
    }
    if (std::from_chars(first, last, integer).ec != std::errc())
      return Bad("an integer of at most 64 bits");
    return Value::Int(integer);
  }

  Result<std::string> ParseString() {
    std::string out;
    if (!Skip("\"")) return Bad("'\"'");
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return Bad("an escaped control character");
      if (!Skip("\\"))
        out += text_[at_++];
      else
        LATTE_RETURN_IF_ERROR(ParseEscape(&out));
    }
    if (!Skip("\"")) return Bad("'\"'");
    return out;
  }

  Status ParseEscape(std::string* out) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (Skip("u")) {
      LATTE_ASSIGN_OR_RETURN(uint32_t unit, ParseHex());
      const bool high = unit >= 0xD800 && unit < 0xDC00;
      const size_t before = at_;
      if (high && Skip("\\u")) {
        LATTE_ASSIGN_OR_RETURN(const uint32_t low, ParseHex());
        if (low >= 0xDC00 && low < 0xE000)
          unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        else
          at_ = before;
      }
      AppendUtf8(unit >= 0xD800 && unit < 0xE000 ? 0xFFFD : unit, out);
      return {};
    }
    const size_t which = at_ < text_.size() ? kFrom.find(text_[at_]) : std::string_view::npos;
    if (which == std::string_view::npos) return Bad("an escape");
    *out += kTo[which];
    ++at_;
    return {};
  }

  Result<uint32_t> ParseHex() {
    uint32_t unit = 0;
    const std::string_view hex = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), unit, 16);
    if (hex.size() != 4 || error != std::errc() || end != hex.data() + 4)
      return Bad("four hexadecimal digits");
    at_ += 4;
    return unit;
  }

  std::string_view text_;
  std::string_view where_;
  size_t at_ = 0;
  int64_t values_ = 0;
};

// The rest of "\u1234".
void AppendUnit(uint32_t unit, std::string* out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  *out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) *out += kDigits[(unit >> shift) & 0xF];
}

void AppendEscaped(std::string_view text, bool ensure_ascii, std::string* out) {
  constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
  constexpr std::string_view kTo = "\"\\nrtfb";
  for (size_t i = 0; i < text.size();) {
    const Utf8Step step = DecodeUtf8(text.substr(i));
    const char32_t c = step.code_point;
    const size_t which = c < 0x80 ? kFrom.find(static_cast<char>(c)) : std::string_view::npos;
    if (which != std::string_view::npos) {
      *out += '\\';
      *out += kTo[which];
    } else if (c >= 0x10000 && ensure_ascii) {
      AppendUnit(0xD7C0 + (c >> 10), out);
      AppendUnit(0xDC00 + (c & 0x3FF), out);
    } else if (c < 0x20 || (c > 0x7E && ensure_ascii)) {
      AppendUnit(c, out);
    } else {
      out->append(text.substr(i, static_cast<size_t>(step.bytes)));
    }
    i += static_cast<size_t>(step.bytes);
  }
}

// The depth of values bounds the recursion.
class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget* budget, std::string* out)
      : style_(style), budget_(budget), out_(out) {}

  Status Write(const Value& value, int level) {
    const size_t before = out_->size();
    switch (value.kind()) {
      case Kind::kNone:
        *out_ += "null";
        break;
      case Kind::kBool:
        *out_ += value.boolean() ? "true" : "false";
        break;
      case Kind::kInt:
        *out_ += std::to_string(value.integer());
        break;
      case Kind::kFloat:
        *out_ += FloatText(value.number());
        break;
      case Kind::kString:
        LATTE_RETURN_IF_ERROR(Quote(value.bytes()));
        break;
      case Kind::kList:
        return WriteList(value.list(), level);
      case Kind::kDict:
        return WriteDict(value.dict(), level);
      default:
        return InvalidArgument(fmt::format("tojson cannot write '{}'", TypeName(value)));
    }
    return Spend(before);
  }

 private:
  Status Spend(size_t before) { return budget_->SpendAppended(before, out_->size()); }

  static std::string FloatText(double value) {
    if (std::isnan(value)) return "NaN";
    return std::isinf(value) ? value < 0 ? "-Infinity" : "Infinity" : FloatRepr(value);
  }

  Status Quote(std::string_view text) {
    *out_ += '"';
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = PartEnd(text, begin);
      LATTE_RETURN_IF_ERROR(budget_->CheckString(out_->size()));
      LATTE_RETURN_IF_ERROR(budget_->Spend(static_cast<int64_t>(end - begin) / 16));
      AppendEscaped(text.substr(begin, end - begin), style_.ensure_ascii, out_);
      begin = end;
    }
    *out_ += '"';
    return {};
  }

  Status NewLine(int level) {
    if (!style_.pretty) return {};
    const size_t size = 1 + static_cast<size_t>(level) * style_.indent.size();
    LATTE_RETURN_IF_ERROR(budget_->SpendAppended(out_->size(), out_->size() + size));
    *out_ += '\n';
    for (int i = 0; i < level; ++i) *out_ += style_.indent;
    return {};
  }

  Status WriteList(const List& list, int level) {
    if (list.items.empty()) {
      *out_ += "[]";
      return budget_->Spend(1, 2);
    }
    char open = '[';
    for (const Value& item : list.items) {
      const size_t before = out_->size();
      if (open) *out_ += open;
      if (!open) *out_ += style_.item_separator;
      open = 0;
      LATTE_RETURN_IF_ERROR(Spend(before));
      LATTE_RETURN_IF_ERROR(NewLine(level + 1));
      LATTE_RETURN_IF_ERROR(Write(item, level + 1));
    }
    LATTE_RETURN_IF_ERROR(NewLine(level));
    *out_ += ']';
    return {};
  }

  // JSON's keys are strings: numbers and None become the text that they have as values.
  Status WriteKey(const Value& key) {
    std::string text;
    if (key.Is(Kind::kNone))
      text = "null";
    else if (key.Is(Kind::kBool))
      text = key.boolean() ? "true" : "false";
    else if (key.Is(Kind::kFloat))
      text = FloatText(key.number());
    else if (key.Is(Kind::kInt))
      text = std::to_string(key.integer());
    return Quote(key.Is(Kind::kString) ? key.bytes() : text);
  }

  Status WriteDict(const Dict& dict, int level) {
    if (dict.entries.empty()) {
      *out_ += "{}";
      return budget_->Spend(1, 2);
    }
    // A total order of keys of different types, which Python does not have, would be our invention.
    const Value& first = dict.entries[dict.sorted.front()].key;
    const Value& last = dict.entries[dict.sorted.back()].key;
    if (style_.sort_keys && first.is_number() != last.is_number() && first.kind() != last.kind())
      return InvalidArgument("tojson: sort_keys needs keys of one type");
    char open = '{';
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      const Dict::Entry& entry = dict.entries[style_.sort_keys ? dict.sorted[i] : i];
      const size_t before = out_->size();
      if (open) *out_ += open;
      if (!open) *out_ += style_.item_separator;
      open = 0;
      LATTE_RETURN_IF_ERROR(Spend(before));
      LATTE_RETURN_IF_ERROR(NewLine(level + 1));
      const size_t before_key = out_->size();
      LATTE_RETURN_IF_ERROR(WriteKey(entry.key));
      *out_ += style_.key_separator;
      LATTE_RETURN_IF_ERROR(Spend(before_key));
      LATTE_RETURN_IF_ERROR(Write(entry.value, level + 1));
    }
    LATTE_RETURN_IF_ERROR(NewLine(level));
    *out_ += '}';
    return {};
  }

  const JsonStyle& style_;
  Budget* budget_;
  std::string* out_;
};

}  // namespace

Result<Value> ParseJson(std::string_view text, std::string_view where) {
  return JsonParser(text, where).Parse();
}

Result<std::string> DumpJson(const Value& value, const JsonStyle& style, Budget* budget) {
  std::string out;
  LATTE_RETURN_IF_ERROR(JsonWriter(style, budget, &out).Write(value, 0));
  return out;
}

}  // namespace latte::jinja
