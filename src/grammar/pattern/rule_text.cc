#include "src/grammar/pattern/rule_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/grammar/pattern/rule_price.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr char32_t kQuote = '"';
constexpr char32_t kBackslash = '\\';
constexpr char32_t kFirstRaw = ' ';

// Control characters with a short escape.
constexpr std::array<std::pair<char32_t, char>, 5> kShortEscapes = {
    {{'\b', 'b'}, {'\t', 't'}, {'\n', 'n'}, {'\f', 'f'}, {'\r', 'r'}}};

// Escapes have a fixed number of digits: more digits may follow them.
std::string ClassChar(char32_t c) {
  if (c < 0x80 && std::string_view("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
                          .find(static_cast<char>(c)) != std::string_view::npos)
    return {static_cast<char>(c)};
  if (c > 0xFFFF) return fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  return fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
}

std::string ClassOf(const CharSet& chars) {
  std::string out = "[";
  for (const CharRange& range : chars.ranges()) {
    out += ClassChar(range.first);
    if (range.last > range.first) {
      out += '-';
      out += ClassChar(range.last);
    }
  }
  return out + "]";
}

// The part of an escape after its backslash: one letter, or u00 and two digits.
RuleExpression EscapeRule(const CharSet& chars) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  CharSet letters;
  std::array<CharSet, 8> last_digits;  // for each first one
  for (const CharRange& range : chars.ranges())
    for (char32_t c = range.first; c <= range.last; ++c) {
      const auto known = std::ranges::find(kShortEscapes, c, &std::pair<char32_t, char>::first);
      const bool itself = c == kQuote || c == kBackslash;
      const auto digit = static_cast<char32_t>(kDigits[c % 16]);
      if (itself || known != kShortEscapes.end())
        letters.Add(itself ? CharRange{c, c}
                           : CharRange{static_cast<char32_t>(known->second),
                                       static_cast<char32_t>(known->second)});
      else
        last_digits.at(c / 16).Add(CharRange{digit, digit});
    }
  std::vector<std::string> ways;
  if (!letters.empty()) ways.push_back(ClassOf(letters));
  std::vector<std::string> digits;
  for (size_t i = 0; i < last_digits.size(); ++i)
    if (!last_digits[i].empty())
      digits.push_back(fmt::format("\"{}\" {}", i, ClassOf(last_digits[i])));
  if (const RuleExpression two = ChoiceRule(digits)) ways.push_back("\"u00\" " + *two);
  return ChoiceRule(ways);
}

}  // namespace

std::string LiteralRule(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

std::vector<std::string> JsonCharChoices(const CharSet& chars) {
  const CharSet escaped = {{0, kFirstRaw - 1}, {kQuote, kQuote}, {kBackslash, kBackslash}};
  const CharSet raw = chars.And(escaped.Complement());
  std::vector<std::string> parts;
  if (!raw.empty()) parts.push_back(ClassOf(raw));
  if (const RuleExpression escape = EscapeRule(chars.And(escaped)))
    parts.push_back("\"\\\\\" " + *escape);
  return parts;
}

RuleExpression JsonCharRule(const CharSet& chars) { return ChoiceRule(JsonCharChoices(chars)); }

RuleExpression PlainCharRule(const CharSet& chars) {
  return chars.empty() ? std::nullopt : RuleExpression(ClassOf(chars));
}

std::string SequenceRule(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (part == "\"\"") continue;
    if (!out.empty()) out += ' ';
    out += part;
  }
  return out.empty() ? "\"\"" : out;
}

RuleExpression ChoiceRule(const std::vector<std::string>& parts) {
  if (parts.empty()) return std::nullopt;
  if (parts.size() == 1) return parts.front();
  return fmt::format("({})", fmt::join(parts, " | "));
}

std::string RepeatRule(const std::string& part, int64_t least, int64_t most) {
  if (most == 0) return "\"\"";
  if (least == 1 && most == 1) return part;
  std::string bounds = "*";
  if (most < 0 && least == 1)
    bounds = "+";
  else if (most < 0 && least > 1)
    bounds = fmt::format("{{{},}}", least);
  else if (least == 0 && most == 1)
    bounds = "?";
  else if (most > 0)
    bounds = least == most ? fmt::format("{{{}}}", least) : fmt::format("{{{}, {}}}", least, most);
  return fmt::format("({}){}", part, bounds);
}

std::string RuleSet::NewName(std::string_view prefix) {
  return fmt::format("{}_{}", prefix, ++names_);
}

void RuleSet::Define(const std::string& name, std::string_view body) {
  text_ += fmt::format("{} ::= {}\n", name, body);
  price_ += PriceOfRules(body);
}

std::string RuleSet::Add(std::string_view prefix, std::string_view body) {
  std::string name = NewName(prefix);
  Define(name, body);
  return name;
}

std::string RuleSet::AddUpTo(int64_t most, const std::vector<std::string>& choices) {
  const std::string more = NewName("more");
  std::string body = "\"\"";
  for (const std::string& choice : choices) body += fmt::format(" | {} {}", choice, more);
  Define(more, body);
  std::string name = NewName("up_to");
  Define(fmt::format("{}[max_chars={}]", name, most), more);
  return name;
}

std::string RuleSet::Text(std::string_view root) const {
  return fmt::format("root ::= {}\n{}", root, text_);
}

}  // namespace latte
