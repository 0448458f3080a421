#include "src/grammar/pattern/rule_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

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

// The part of an escape after its backslash.
std::string EscapeOf(char32_t c) {
  if (c == kQuote || c == kBackslash) return {static_cast<char>(c)};
  for (const auto& [control, letter] : kShortEscapes)
    if (c == control) return {letter};
  return fmt::format("u{:04x}", static_cast<uint32_t>(c));
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

RuleExpression JsonCharRule(const CharSet& chars) {
  const CharSet escaped = {{0, kFirstRaw - 1}, {kQuote, kQuote}, {kBackslash, kBackslash}};
  const CharSet raw = chars.And(escaped.Complement());
  std::vector<std::string> parts;
  if (!raw.empty()) parts.push_back(ClassOf(raw));
  std::vector<std::string> escapes;
  const CharSet needed = chars.And(escaped);
  for (const CharRange& range : needed.ranges())
    for (char32_t c = range.first; c <= range.last; ++c)
      escapes.push_back(LiteralRule(EscapeOf(c)));
  if (const RuleExpression escape = ChoiceRule(escapes)) parts.push_back("\"\\\\\" " + *escape);
  return ChoiceRule(parts);
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
}

std::string RuleSet::Add(std::string_view prefix, std::string_view body) {
  std::string name = NewName(prefix);
  Define(name, body);
  return name;
}

std::string RuleSet::Text(std::string_view root) const {
  return fmt::format("root ::= {}\n{}", root, text_);
}

}  // namespace latte
