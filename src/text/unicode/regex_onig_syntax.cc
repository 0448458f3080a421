#include "src/text/unicode/regex_onig_syntax.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "src/base/strings.h"
#include "src/text/unicode/printable.h"
#include "src/text/unicode/unicode.h"
#include "src/text/unicode/unicode_supplement.h"

namespace latte {
namespace {

constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
// The other categories are the same in both engines, except for code points that Unicode added
// later.
constexpr std::string_view kKnownCategories[] = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"};
constexpr std::string_view kKnownScripts[] = {"Han",      "Hangul", "Hiragana", "Katakana",
                                              "Bopomofo", "Latin",  "Greek",    "Cyrillic",
                                              "Arabic",   "Hebrew", "Thai",     "Devanagari"};

template <size_t N>
bool Contains(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

void AppendCodePoint(char32_t c, std::string* out) {
  if (c < 0x80 && IsAlphanumeric(static_cast<char>(c))) {
    out->push_back(static_cast<char>(c));
  } else {
    out->append(fmt::format("\\x{{{:X}}}", static_cast<uint32_t>(c)));
  }
}

// A set of code points, written as the inside of a PCRE2 class.
struct Class {
  std::string body;
  bool negated = false;

  std::string Bracketed() const { return fmt::format("[{}{}]", negated ? "^" : "", body); }
};

// One escape: a single code point or a set of code points.
struct Escape {
  std::optional<char32_t> code_point;
  Class set;
};

// Ten times longer than any real pattern. A short escape may become a kilobyte of ranges.
constexpr size_t kMaxPatternBytes = 16384;

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Result<std::string> Run() {
    if (in_.size() > kMaxPatternBytes)
      return Unsupported(fmt::format("expected a pattern of at most {} bytes, found {}: '{}'",
                                     kMaxPatternBytes, in_.size(), Printable(in_)));
    // If the match fails at the first white space of a run, it fails in the whole run. Without the
    // anchor, a long run that is not at the end costs quadratic time.
    if (in_ == R"(\s+$)") return fmt::format(R"((?:(?<![{0}])|\G)[{0}]+$)", kWhiteSpace);
    if (ValidUtf8Prefix(in_) != in_.size()) return Refuse("bytes that are not UTF-8");
    while (at_ < in_.size()) LATTE_RETURN_IF_ERROR(Atom());
    return std::move(out_);
  }

 private:
  tl::unexpected<Error> Refuse(std::string_view what) const {
    return Unsupported(
        fmt::format("expected a pattern that means the same to Oniguruma and PCRE2, found {} at "
                    "byte {} of '{}'",
                    what, at_, Printable(in_)));
  }
  bool Next(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  bool Take(std::string_view text) {
    if (!Next(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t TakeCodePoint() {
    const Utf8Step step = DecodeUtf8(in_.substr(at_));
    at_ += static_cast<size_t>(step.bytes);
    return step.code_point;
  }

  Status Atom() {
    const char c = in_[at_];
    if (c == '(') return Group();
    if (c == '[') {
      LATTE_ASSIGN_OR_RETURN(const std::string set, BracketClass());
      out_ += set;
      return Quantifier();
    }
    if (c == ')') {
      ++at_;
      out_ += ')';
      return Quantifier();
    }
    if (c == '|' || c == '^' || c == '$') {
      ++at_;
      out_ += c;
      return {};
    }
    if (c == '*' || c == '+' || c == '?') return Refuse("a quantifier with nothing before it");
    if (c == '.') {
      ++at_;
      out_ += c;
      return Quantifier();
    }
    if (c == '\\') {
      LATTE_ASSIGN_OR_RETURN(const Escape escape, TakeEscape());
      if (escape.code_point) {
        AppendCodePoint(*escape.code_point, &out_);
      } else {
        out_ += escape.set.Bracketed();
      }
      return Quantifier();
    }
    AppendCodePoint(TakeCodePoint(), &out_);
    return Quantifier();
  }

  Status Group() {
    // An option in the middle of a pattern has a wider scope in PCRE2 than in Ruby's syntax.
    if (at_ == 0 && Take("(?i)")) {
      out_ += "(?i)";
      return {};
    }
    for (const std::string_view open : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
      if (!Take(open)) continue;
      out_ += open;
      return {};
    }
    if (Next("(?") || Next("(*")) return Refuse("this kind of group");
    ++at_;
    out_ += "(?:";
    return {};
  }

  // The suffix of an atom: * + ? with lazy or possessive forms, {n}, {n,}, {n,m} and {,m}.
  Status Quantifier() {
    if (at_ == in_.size()) return {};
    const char c = in_[at_];
    if (c == '*' || c == '+' || c == '?') {
      out_ += c;
      ++at_;
      if (Next("?") || Next("+")) out_ += in_[at_++];
    } else if (c == '{') {
      LATTE_RETURN_IF_ERROR(Interval());
    } else {
      return {};
    }
    if (Next("*") || Next("+") || Next("?") || Next("{")) return Refuse("two quantifiers in a row");
    return {};
  }

  std::string_view TakeDigits() {
    const size_t begin = at_;
    while (at_ < in_.size() && IsDigit(in_[at_])) ++at_;
    return in_.substr(begin, at_ - begin);
  }

  Status Interval() {
    ++at_;  // the brace
    const std::string_view low = TakeDigits();
    const bool range = Take(",");
    const std::string_view high = range ? TakeDigits() : low;
    if ((low.empty() && high.empty()) || !Take("}")) return Refuse("a '{' that begins no interval");
    out_ += fmt::format("{{{}{}{}}}", low.empty() ? "0" : low, range ? "," : "", range ? high : "");
    // {n}? is an optional group in Ruby's syntax, and {n,m}+ is a repeated one.
    if (range && Take("?")) out_ += '?';
    return {};
  }

  Result<Escape> TakeEscape() {
    ++at_;  // the backslash
    if (at_ == in_.size()) return Refuse("a backslash at the end");
    const char c = in_[at_];
    if (c == 'p' || c == 'P') return Property();
    if (c == 'x' || c == 'u') return Hexadecimal();
    if (c == 's' || c == 'S') {
      ++at_;
      return Escape{.code_point = {},
                    .set = {.body = std::string(kWhiteSpace), .negated = c == 'S'}};
    }
    if (c == 'd' || c == 'D') {
      ++at_;
      return Escape{.code_point = {}, .set = Named("Nd", /*script=*/false, c == 'D')};
    }
    constexpr std::string_view kNames = "tnvfrae";
    constexpr std::string_view kValues = "\t\n\v\f\r\a\x1B";
    if (const size_t control = kNames.find(c); control != std::string_view::npos) {
      ++at_;
      return Escape{.code_point = static_cast<char32_t>(kValues[control]), .set = {}};
    }
    if (IsAlphanumeric(c)) return Refuse(fmt::format("the escape \\{}", c));
    return Escape{.code_point = TakeCodePoint(), .set = {}};
  }

  // \xHH (ASCII only: above it Oniguruma means a byte), \x{H…} and \uHHHH.
  Result<Escape> Hexadecimal() {
    const bool unicode = in_[at_] == 'u';
    ++at_;
    const bool braces = !unicode && Take("{");
    const size_t longest = braces ? 8 : unicode ? 4 : 2;
    char32_t value = 0;
    size_t digits = 0;
    for (; digits < longest && at_ < in_.size(); ++digits, ++at_) {
      const int digit = HexDigit(in_[at_]);
      if (digit < 0) break;
      value = value * 16 + static_cast<char32_t>(digit);
    }
    const bool closed = !braces || Take("}");
    if (!closed || digits == 0 || (unicode && digits != 4) || (!unicode && !braces && value > 0x7F))
      return Refuse("an escape that is no code point");
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
      return Refuse("an escape that is no code point");
    return Escape{.code_point = value, .set = {}};
  }

  Result<Escape> Property() {
    bool negated = in_[at_] == 'P';
    ++at_;
    const size_t end = in_.find('}', at_);
    if (!Take("{") || end == std::string_view::npos) return Refuse("\\p without {name}");
    if (Take("^")) negated = !negated;
    const std::string_view name = in_.substr(at_, end - at_);
    const bool script = Contains(kKnownScripts, name);
    if (!script && !Contains(kKnownCategories, name))
      return Refuse(fmt::format("the property '{}'", Printable(name)));
    at_ = end + 1;
    return Escape{.code_point = {}, .set = Named(name, script, negated)};
  }

  static Class Named(std::string_view name, bool script, bool negated) {
    Class out{.body = fmt::format("\\p{{{}{}}}", script ? "sc:" : "", name), .negated = negated};
    for (const UnicodeSupplement& added : script ? ScriptSupplement() : CategorySupplement()) {
      const std::string_view found = added.name;
      if (script ? found != name : !found.starts_with(name)) continue;
      AppendCodePoint(added.first, &out.body);
      out.body += '-';
      AppendCodePoint(added.last, &out.body);
    }
    return out;
  }

  // A whole [...] with an optional `&&[...]` at its end.
  Result<std::string> BracketClass() {
    LATTE_ASSIGN_OR_RETURN(const Class left, ClassUpTo());
    if (Take("]")) return left.Bracketed();
    if (!Take("&&") || !Next("[") || left.negated) return Refuse("this form of set intersection");
    LATTE_ASSIGN_OR_RETURN(Class right, ClassUpTo());
    if (!Take("]") || !Take("]")) return Refuse("this form of set intersection");
    const std::string_view look = right.negated ? "(?!" : "(?=";
    right.negated = false;
    return fmt::format("(?:{}{}){})", look, right.Bracketed(), left.Bracketed());
  }

  // The items after '[', up to the ']' or '&&' that ends them.
  Result<Class> ClassUpTo() {
    ++at_;
    Class out{.body = {}, .negated = Take("^")};
    bool first = true;
    std::string sets;  // written after the ranges of the pattern
    for (; at_ < in_.size() && !Next("]") && !Next("&&"); first = false) {
      if (Next("[")) return Refuse("a set inside a set");
      LATTE_ASSIGN_OR_RETURN(const Escape low, ClassItem(first));
      if (!low.code_point) {
        if (low.set.negated) return Refuse("a negated set inside a set");
        sets += low.set.body;
        continue;
      }
      AppendCodePoint(*low.code_point, &out.body);
      if (!Next("-") || in_.substr(at_ + 1).starts_with("]")) continue;
      ++at_;
      if (at_ == in_.size() || Next("[")) return Refuse("a range without an end");
      LATTE_ASSIGN_OR_RETURN(const Escape high, ClassItem(/*first=*/true));
      if (!high.code_point || *high.code_point < *low.code_point)
        return Refuse("a range whose end is not a later character");
      out.body += '-';
      AppendCodePoint(*high.code_point, &out.body);
    }
    if (at_ == in_.size()) return Refuse("a '[' that is never closed");
    out.body += sets;
    if (out.body.empty()) return Refuse("an empty set");
    return out;
  }

  // A hyphen stands for itself only at the start and at the end of a class.
  Result<Escape> ClassItem(bool first) {
    if (Next("\\")) return TakeEscape();
    if (Next("-") && !first && !in_.substr(at_ + 1).starts_with("]"))
      return Refuse("a hyphen between sets");
    return Escape{.code_point = TakeCodePoint(), .set = {}};
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> TranslatePattern(std::string_view pattern) { return Translator(pattern).Run(); }

}  // namespace latte
