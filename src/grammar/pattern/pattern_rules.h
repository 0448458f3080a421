// Patterns as rules over the text of a JSON string, between its quotes.
#pragma once

#include <span>
#include <string_view>

#include "latte/status.h"

#include "src/grammar/pattern/pattern.h"
#include "src/grammar/pattern/rule_text.h"

namespace latte {

// The text of JSON strings, between the quotes, whose value matches the pattern.
RuleExpression PatternRule(const Pattern& pattern);

// Which texts match several patterns at once.
struct PatternSet {
  std::vector<Pattern> all_of;
  std::vector<Pattern> none_of;
};

// Whether `utf8` is in the set. Errors: kUnsupported if that takes too many states.
[[nodiscard]] Result<bool> IsInSet(const PatternSet& set, std::string_view utf8);

// JSON strings, with their quotes, whose value is in the set; adds rules if it needs some.
// Errors: kUnsupported for several patterns that take too many states.
[[nodiscard]] Result<RuleExpression> JsonStringRule(const PatternSet& set, RuleSet* rules);

}  // namespace latte
