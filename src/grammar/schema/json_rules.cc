#include "src/grammar/schema/json_rules.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "src/grammar/pattern/rule_price.h"
#include "src/grammar/schema/number_rules.h"

namespace latte {
namespace {

struct NamedJsonRule {
  std::string_view name;
  std::string_view body;
  std::vector<JsonRule> uses;
};

const std::array<NamedJsonRule, 9>& AllJsonRules() {
  using enum JsonRule;
  // White space in one place is bounded: models that lose their way write it for ever. So are
  // numbers, which few readers accept at any length. A character, escaped or not, is one character
  // of the value: surrogates come in pairs.
  static const std::array<NamedJsonRule, 9> rules = {{
      {"json_space", R"([ \n\t\r]{0, 24})", {}},
      {"json_escape",
       R"(["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] ([0-7] [0-9a-fA-F]{2} | )"
       R"([89abAB] [0-9a-fA-F]{2} "\\u" [dD] [c-fC-F] [0-9a-fA-F]{2})))",
       {}},
      {"json_text", R"("\"" | [^"\\\x00-\x1f] json_text | "\\" json_escape json_text)", {kEscape}},
      {"json_string", R"("\"" json_text)", {kText}},
      {"json_number", "", {}},
      {"json_integer", "", {}},
      {"json_value",
       R"(json_object | json_array | json_string | json_number | "true" | "false" | "null")",
       {kObject, kArray, kString, kNumber}},
      {"json_object",
       R"("{" json_space (json_string json_space ":" json_space json_value json_space ("," json_space json_string json_space ":" json_space json_value json_space)*)? "}")",
       {kSpace, kString, kValue}},
      {"json_array",
       R"("[" json_space (json_value json_space ("," json_space json_value json_space)*)? "]")",
       {kSpace, kValue}},
  }};
  return rules;
}

// A rule for every number of characters that are left, shared by all strings, if they are few: a
// mask of all tokens is computed for each. More characters than that are counted (RuleSet::AddUpTo)
// where they may be absent, and written in blocks where they may not.
constexpr int64_t kMostExact = 32;

}  // namespace

std::string JsonRules::Use(JsonRule rule) {
  const auto i = static_cast<size_t>(rule);
  const NamedJsonRule& named = AllJsonRules()[i];
  if (!used_[i]) {
    used_[i] = true;
    for (const JsonRule other : named.uses) Use(other);
  }
  return std::string(named.name);
}

std::string JsonRules::Bounded(const std::string& name, const std::string& body) {
  if (bounded_.emplace(name, body).second) price_ += PriceOfRules(body);
  return name;
}

std::string JsonRules::OneMore(const std::string& rest) {
  const std::string escape = Use(JsonRule::kEscape);
  return fmt::format(R"([^"\\\x00-\x1f] {0} | "\\" {1} {0})", rest, escape);
}

// The rest of a string of at most so many characters, with its last quote.
std::string JsonRules::AtMost(int64_t most) {
  const auto name = [](int64_t n) { return fmt::format("json_up_to_{}", n); };
  if (most > kMostExact) {
    Bounded("json_more", fmt::format(R"("" | {})", OneMore("json_more")));
    Bounded(fmt::format("{}[max_chars={}]", name(most), most), "json_more");
    return name(most) + R"( "\"")";
  }
  Bounded(name(0), R"("\"")");
  for (int64_t n = 1; n <= most; ++n)
    Bounded(name(n), fmt::format(R"("\"" | {})", OneMore(name(n - 1))));
  return name(most);
}

std::string JsonRules::Exactly(int64_t count) {
  Bounded("json_exactly_0", "\"\"");
  for (int64_t n = 1; n <= count; ++n)
    Bounded(fmt::format("json_exactly_{}", n), OneMore(fmt::format("json_exactly_{}", n - 1)));
  return fmt::format("json_exactly_{}", count);
}

// `least` characters, then up to `most`.
std::string JsonRules::After(int64_t least, int64_t most) {
  std::string out = most < 0 ? Use(JsonRule::kText) : AtMost(most);
  const std::string end = most < 0 ? "any" : fmt::format("{}", most);
  for (int64_t n = 1; n <= least % kMostExact; ++n)
    out = Bounded(fmt::format("json_{}_then_{}", n, end), OneMore(out));
  if (least >= kMostExact)
    out = fmt::format("({}){{{}}} {}", Exactly(kMostExact), least / kMostExact, out);
  return out;
}

std::string JsonRules::UseString(int64_t least, int64_t most) {
  return fmt::format(R"("\"" {})", After(least, most < 0 ? most : most - least));
}

std::string JsonRules::Text() const {
  std::string out;
  for (const auto& [name, body] : bounded_) out += fmt::format("{} ::= {}\n", name, body);
  for (size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) continue;
    const NamedJsonRule& rule = AllJsonRules()[i];
    const bool is_number = rule.body.empty();
    const bool integers_only = i == static_cast<size_t>(JsonRule::kInteger);
    out += fmt::format("{} ::= {}\n", rule.name,
                       is_number ? FreeNumberRule(integers_only) : std::string(rule.body));
  }
  return out;
}

}  // namespace latte
