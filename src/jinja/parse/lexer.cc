#include "src/jinja/parse/lexer.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/jinja/text.h"
#include "src/text/unicode/unicode.h"

namespace latte::jinja {
namespace {

bool IsNameStart(char c) { return IsLetter(c) || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> Run() {
    while (at_ < source_.size()) {
      size_t begin = at_;
      while (begin + 1 < source_.size() &&
             !(source_[begin] == '{' && std::string_view("{%#").find(source_[begin + 1]) < 3))
        ++begin;
      if (begin + 1 >= source_.size()) {
        Emit(TokenType::kData, source_.substr(at_), at_);
        break;
      }
      const char kind = source_[begin + 1];
      const char sign = begin + 2 < source_.size() ? source_[begin + 2] : '\0';
      EmitData(begin, kind, sign);
      at_ = begin + (sign == '-' || sign == '+' ? 3 : 2);
      if (kind == '#') {
        LATTE_RETURN_IF_ERROR(SkipComment(begin));
      } else if (const size_t raw = RawBegin(begin); raw != std::string_view::npos) {
        at_ = raw;
        LATTE_RETURN_IF_ERROR(LexRaw(begin));
      } else {
        const bool variable = kind == '{';
        Emit(variable ? TokenType::kVariableBegin : TokenType::kBlockBegin, {}, begin);
        LATTE_RETURN_IF_ERROR(LexTag(variable, begin));
      }
    }
    Emit(TokenType::kEnd, {}, source_.size());
    return std::move(tokens_);
  }

 private:
  tl::unexpected<Error> Bad(size_t offset, std::string_view what) const {
    return InvalidArgument(Where(source_, static_cast<uint32_t>(offset)) + std::string(what));
  }

  void Emit(TokenType type, std::string_view text, size_t offset) {
    if (type == TokenType::kData && text.empty()) return;
    tokens_.push_back({type, std::string(text), static_cast<uint32_t>(offset)});
  }

  // Emits the text before the tag at `begin`, without the white space that the tag's sign or
  // lstrip_blocks removes.
  void EmitData(size_t begin, char kind, char sign) {
    std::string_view text = source_.substr(at_, begin - at_);
    if (sign == '-') {
      text = text.substr(0, Strip(Text(std::string(text), true), {}, false, true).size());
    } else if (sign != '+' && kind != '{') {
      const size_t newline = text.rfind('\n');
      const bool whole_line = newline != std::string_view::npos || line_starting_;
      const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      size_t end = line;
      while (end < text.size() && SpaceAt(text, end) > 0) end += SpaceAt(text, end);
      if (whole_line && end == text.size()) text = text.substr(0, line);
    }
    Emit(TokenType::kData, text, at_);
  }

  void SkipSpace() {
    for (size_t n = 0; at_ < source_.size() && (n = SpaceAt(source_, at_)) > 0;) at_ += n;
  }

  // Skips the `size` bytes that end a tag and the white space that the tag removes.
  void FinishTag(size_t size, bool strip, bool trim_newline) {
    at_ += size;
    if (strip)
      SkipSpace();
    else if (trim_newline && at_ < source_.size() && source_[at_] == '\n')
      ++at_;
    line_starting_ = source_[at_ - 1] == '\n';
  }

  Status SkipComment(size_t begin) {
    const size_t close = source_.find("#}", at_);
    if (close == std::string_view::npos) return Bad(begin, "comment without '#}'");
    const char sign = close > at_ ? source_[close - 1] : '\0';
    at_ = close;
    FinishTag(2, sign == '-', sign != '+');
    return {};
  }

  // Where the tag "{% word %}" at `begin` ends, or npos if another one begins there. `sign` becomes
  // the sign before its end.
  size_t AfterTag(size_t begin, std::string_view word, char* sign) const {
    const auto skip_space = [this](size_t i) {
      for (size_t n = 0; i < source_.size() && (n = SpaceAt(source_, i)) > 0;) i += n;
      return i;
    };
    const auto sign_at = [this](size_t i) {
      return i < source_.size() && (source_[i] == '-' || source_[i] == '+');
    };
    size_t i = skip_space(begin + (sign_at(begin + 2) ? 3 : 2));
    if (source_.substr(i, word.size()) != word) return std::string_view::npos;
    i = skip_space(i + word.size());
    *sign = sign_at(i) ? source_[i++] : '\0';
    return source_.substr(i, 2) == "%}" ? i + 2 : std::string_view::npos;
  }

  // Where the text of a raw block begins, if "{% raw %}" is at `begin`; else npos. No newline is
  // removed after the tag.
  size_t RawBegin(size_t begin) {
    char sign = '\0';
    const size_t end =
        source_[begin + 1] == '%' ? AfterTag(begin, "raw", &sign) : std::string_view::npos;
    if (end == std::string_view::npos || sign == '+') return std::string_view::npos;
    size_t text = end;
    for (size_t n = 0; sign == '-' && text < source_.size() && (n = SpaceAt(source_, text)) > 0;)
      text += n;
    return text;
  }

  // Emits what stands before "{% endraw %}" as text.
  Status LexRaw(size_t begin) {
    line_starting_ = source_[at_ - 1] == '\n';
    for (size_t tag = at_; (tag = source_.find("{%", tag)) != std::string_view::npos; ++tag) {
      char sign = '\0';
      const size_t end = AfterTag(tag, "endraw", &sign);
      if (end == std::string_view::npos) continue;
      EmitData(tag, '%', tag + 2 < source_.size() ? source_[tag + 2] : '\0');
      at_ = end;
      FinishTag(0, sign == '-', sign != '+');
      return {};
    }
    return Bad(begin, "'{% raw %}' without '{% endraw %}'");
  }

  bool TryEnd(bool variable) {
    const std::string_view rest = source_.substr(at_);
    const std::string_view close = variable ? "}}" : "%}";
    const bool minus = rest.starts_with('-') && rest.substr(1).starts_with(close);
    const bool plus = !variable && rest.starts_with('+') && rest.substr(1).starts_with(close);
    if (!minus && !plus && !rest.starts_with(close)) return false;
    Emit(variable ? TokenType::kVariableEnd : TokenType::kBlockEnd, {}, at_);
    FinishTag(minus || plus ? 3 : 2, minus, !variable && !plus);
    return true;
  }

  Status LexTag(bool variable, size_t begin) {
    std::string open;  // open brackets; the end of a tag is not searched inside them
    while (true) {
      SkipSpace();
      if (at_ >= source_.size()) return Bad(begin, "tag without an end");
      if (open.empty() && TryEnd(variable)) return {};
      const char c = source_[at_];
      if (IsNameStart(c)) {
        const size_t start = at_;
        while (at_ < source_.size() && (IsNameStart(source_[at_]) || IsDigit(source_[at_]))) ++at_;
        Emit(TokenType::kName, source_.substr(start, at_ - start), start);
      } else if (IsDigit(c)) {
        LATTE_RETURN_IF_ERROR(LexNumber());
      } else if (c == '\'' || c == '"') {
        LATTE_RETURN_IF_ERROR(LexString());
      } else {
        LATTE_RETURN_IF_ERROR(LexOperator(&open));
      }
    }
  }

  // "0x1f", "0o17" or "0b11", whose digits begin at `start`.
  Status LexPrefixedInteger(size_t start, int base) {
    at_ += 2;
    std::string digits;
    for (; at_ < source_.size() && (IsNameStart(source_[at_]) || IsDigit(source_[at_])); ++at_)
      if (source_[at_] != '_') digits += source_[at_];
    int64_t value = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size())
      return Bad(start, "no integer of at most 64 bits");
    Emit(TokenType::kInteger, std::to_string(value), start);
    return {};
  }

  Status LexNumber() {
    const size_t start = at_;
    constexpr std::string_view kPrefixes = "xXoObB";
    constexpr int kBases[] = {16, 16, 8, 8, 2, 2};
    const size_t prefix = source_[at_] == '0' && at_ + 1 < source_.size()
                              ? kPrefixes.find(source_[at_ + 1])
                              : std::string_view::npos;
    if (prefix != std::string_view::npos) return LexPrefixedInteger(start, kBases[prefix]);
    const auto digit_at = [this](size_t i) { return i < source_.size() && IsDigit(source_[i]); };
    const auto digits = [&] {  // underscores may stand between them
      while (digit_at(at_) || (at_ < source_.size() && source_[at_] == '_' && digit_at(at_ + 1)))
        ++at_;
    };
    digits();
    bool is_float = false;
    const bool is_index = start > 0 && source_[start - 1] == '.';  // "items.0.name"
    if (!is_index && at_ < source_.size() && source_[at_] == '.' && digit_at(at_ + 1)) {
      is_float = true;
      ++at_;
      digits();
    }
    if (!is_index && at_ < source_.size() && (source_[at_] == 'e' || source_[at_] == 'E')) {
      const bool sign =
          at_ + 1 < source_.size() && (source_[at_ + 1] == '+' || source_[at_ + 1] == '-');
      if (digit_at(at_ + (sign ? 2 : 1))) {
        is_float = true;
        at_ += sign ? 2 : 1;
        digits();
      }
    }
    std::string text(source_.substr(start, at_ - start));
    const bool odd = at_ < source_.size() && IsNameStart(source_[at_]);
    if (odd || (!is_float && text.size() > 1 && text[0] == '0')) return Bad(start, "no number");
    std::erase(text, '_');
    Emit(is_float ? TokenType::kFloat : TokenType::kInteger, text, start);
    return {};
  }

  Status LexString() {
    const size_t start = at_;
    const char quote = source_[at_++];
    std::string text;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] != '\\')
        text += source_[at_++];
      else
        LATTE_RETURN_IF_ERROR(LexEscape(&text));
    }
    if (at_ >= source_.size()) return Bad(start, "string without its closing quote");
    ++at_;
    Emit(TokenType::kString, text, start);
    return {};
  }

  // Python's escapes; an unknown escape keeps its backslash.
  Status LexEscape(std::string* text) {
    constexpr std::string_view kFrom = "\\'\"abfnrtv";
    constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    const size_t start = at_++;
    if (at_ >= source_.size()) return Bad(start, "string without its closing quote");
    const char c = source_[at_++];
    const size_t which = kFrom.find(c);
    if (which != std::string_view::npos) {
      *text += kTo[which];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      return LexCodePoint(start, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16, text);
    } else if (c >= '0' && c <= '7') {
      --at_;
      size_t digits = 1;
      while (digits < 3 && at_ + digits < source_.size() && source_[at_ + digits] >= '0' &&
             source_[at_ + digits] <= '7')
        ++digits;
      return LexCodePoint(start, digits, 8, text);
    } else if (c == 'N') {
      return Bad(start, "\\N{…} is not supported in strings");
    } else if (c != '\n') {
      *text += '\\';
      *text += c;
    }
    return {};
  }

  Status LexCodePoint(size_t start, size_t digits, uint32_t base, std::string* text) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const int digit = at_ < source_.size() ? HexDigit(source_[at_]) : -1;
      if (digit < 0) return Bad(start, "wrong escape in a string");
      value = value * base + static_cast<uint32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      return Bad(start, "no such character");
    AppendUtf8(value, text);
    return {};
  }

  Status LexOperator(std::string* open) {
    constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", "<=", ">="};
    constexpr std::string_view kOpen = "([{";
    constexpr std::string_view kClose = ")]}";
    const char c = source_[at_];
    if (kOpen.find(c) != std::string_view::npos) {
      *open += c;
    } else if (const size_t close = kClose.find(c); close != std::string_view::npos) {
      if (open->empty() || open->back() != kOpen[close])
        return Bad(at_, fmt::format("'{}' closes nothing", c));
      open->pop_back();
    } else if (std::string_view("+-*/%~<>=.:|,;").find(c) == std::string_view::npos &&
               source_.substr(at_, 2) != "!=") {
      const Utf8Step step = DecodeUtf8(source_.substr(at_));
      return Bad(at_, fmt::format("unexpected '{}'",
                                  source_.substr(at_, static_cast<size_t>(step.bytes))));
    }
    size_t size = 1;
    for (const std::string_view two : kTwo)
      if (source_.substr(at_, 2) == two) size = 2;
    Emit(TokenType::kOperator, source_.substr(at_, size), at_);
    at_ += size;
    return {};
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  bool line_starting_ = true;  // the previous text ended with a newline
};

}  // namespace

std::string NormaliseNewlines(std::string_view source) {
  std::string out;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    out += source[i] == '\r' ? '\n' : source[i];
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

std::string Where(std::string_view source, uint32_t offset) {
  const std::string_view before = source.substr(0, offset);
  const size_t newline = before.rfind('\n');
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto column =
      1 + CodePoints(newline == std::string_view::npos ? before : before.substr(newline + 1));
  return fmt::format("chat template, line {}, column {}: ", line, column);
}

Result<std::vector<Token>> Tokenize(std::string_view source) { return Lexer(source).Run(); }

}  // namespace latte::jinja
