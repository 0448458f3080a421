#include "src/jinja/json.h"

#include <charconv>

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

}  // namespace

Result<Value> ParseJson(std::string_view text, std::string_view where) {
  return JsonParser(text, where).Parse();
}

}  // namespace latte::jinja
