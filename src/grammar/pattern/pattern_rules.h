// Patterns as rules over the text of a JSON string, between its quotes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "src/grammar/pattern/pattern.h"
#include "src/grammar/pattern/rule_text.h"

namespace latte {

// Which texts match several patterns at once.
struct PatternSet {
  std::vector<Pattern> all_of;
  std::vector<Pattern> none_of;
};

// Whether `utf8` is in the set. Errors: kUnsupported if that takes too many states.
[[nodiscard]] Result<bool> IsInSet(const PatternSet& set, std::string_view utf8);

// The reachable states of the automaton of a set, the first one first.
struct StateTable {
  struct Row {
    bool ends = false;
    std::vector<std::pair<CharSet, size_t>> moves;
  };
  std::vector<Row> rows;
  std::vector<bool> useful;  // leads to an end
};
// Errors: kUnsupported if there are too many.
[[nodiscard]] Result<StateTable> StatesOf(const PatternSet& set);

// JSON strings, with their quotes, whose value is in the set; adds rules if it needs some.
// Errors: as StatesOf.
[[nodiscard]] Result<RuleExpression> JsonStringRule(const PatternSet& set, RuleSet* rules);

// A grammar of the texts that match a regular expression as a whole. Errors: of ParsePattern and
// StatesOf; kInvalidArgument for one that no text matches.
[[nodiscard]] Result<std::string> RegexRules(const std::string& regex);

}  // namespace latte
