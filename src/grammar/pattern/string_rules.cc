// Automata of texts as rules: one for every state, so that xgrammar finds the tokens that may
// follow much faster than in repetitions and choices.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "src/grammar/pattern/pattern_rules.h"

namespace latte {
namespace {

// A longer repetition of one character at the end of a pattern has a count instead of states.
constexpr int kMostCountedStates = 32;

bool IsFixed(const Pattern& part) {
  switch (part.kind) {
    case Pattern::Kind::kChars:
      return true;
    case Pattern::Kind::kSequence:
      return std::ranges::all_of(part.parts, IsFixed);
    case Pattern::Kind::kRepeat:
      return part.least == part.most && IsFixed(part.parts.front());
    case Pattern::Kind::kChoice:
      break;
  }
  return false;
}

// What may follow a text: up to `most` of `chars`.
struct CountedTail {
  CharSet chars;
  int most = 0;
};

// Takes a long repetition off the end of a pattern, if what is before it has one length: else it
// would be open where the repetition begins.
std::optional<CountedTail> TakeTail(Pattern* pattern) {
  const auto is_empty = [](const Pattern& part) {
    return part.kind == Pattern::Kind::kSequence && part.parts.empty();
  };
  if (pattern->kind == Pattern::Kind::kSequence) {
    std::erase_if(pattern->parts, is_empty);
    if (pattern->parts.empty() ||
        !std::all_of(pattern->parts.begin(), pattern->parts.end() - 1, IsFixed))
      return {};
    return TakeTail(&pattern->parts.back());
  }
  if (pattern->kind != Pattern::Kind::kRepeat || pattern->most == Pattern::kNoEnd ||
      pattern->most - pattern->least <= kMostCountedStates)
    return {};
  const Pattern& part = pattern->parts.front();
  if (part.kind != Pattern::Kind::kChars || part.chars.empty()) return {};
  CountedTail out{part.chars, pattern->most - pattern->least};
  pattern->most = pattern->least;
  return out;
}

using CharChoices = std::vector<std::string> (*)(const CharSet&);

std::vector<std::string> PlainCharChoices(const CharSet& chars) {
  const RuleExpression rule = PlainCharRule(chars);
  return rule ? std::vector<std::string>{*rule} : std::vector<std::string>();
}

// The rule of the first state. end: what follows the text. Nothing: no text is in the set.
Result<RuleExpression> TextRule(PatternSet set, CharChoices choices_of, std::string end,
                                RuleSet* rules) {
  if (set.none_of.empty() && set.all_of.size() == 1)
    if (const auto tail = TakeTail(&set.all_of.front()))
      end = SequenceRule({rules->AddUpTo(tail->most, choices_of(tail->chars)), end});
  LATTE_ASSIGN_OR_RETURN(const StateTable table, StatesOf(set));
  if (!table.useful.front()) return RuleExpression();
  std::vector<std::string> names;
  for (const bool useful : table.useful) names.push_back(useful ? rules->NewName("text") : "");
  for (size_t i = 0; i < names.size(); ++i) {
    if (!table.useful[i]) continue;
    std::vector<std::string> ways;
    if (table.rows[i].ends) ways.push_back(end);
    for (const auto& [chars, next] : table.rows[i].moves)
      if (table.useful[next]) ways.push_back(*ChoiceRule(choices_of(chars)) + " " + names[next]);
    rules->Define(names[i], *ChoiceRule(ways));
  }
  return RuleExpression(names.front());
}

}  // namespace

Result<RuleExpression> JsonStringRule(const PatternSet& set, RuleSet* rules) {
  const std::string quote = LiteralRule("\"");
  LATTE_ASSIGN_OR_RETURN(const RuleExpression text, TextRule(set, JsonCharChoices, quote, rules));
  return text ? RuleExpression(SequenceRule({quote, *text})) : RuleExpression();
}

Result<std::string> RegexRules(const std::string& regex) {
  auto pattern = ParsePattern(regex, PatternEnds::kWhole);
  if (!pattern)
    return Fail(pattern.error().code,
                "grammar: the regular expression: " + pattern.error().message);
  RuleSet rules;
  const auto text = TextRule({{*std::move(pattern)}, {}}, PlainCharChoices, "\"\"", &rules);
  if (!text)
    return Fail(text.error().code, "grammar: the regular expression: " + text.error().message);
  if (!*text) return InvalidArgument("grammar: no text matches this regular expression");
  return rules.Text(**text);
}

}  // namespace latte
