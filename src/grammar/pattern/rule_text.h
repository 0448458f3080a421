// Text of grammars in the syntax kEbnf (src/grammar/grammar.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/grammar/pattern/char_set.h"

namespace latte {

// Expressions may stand in a sequence without brackets. No expression: nothing matches.
using RuleExpression = std::optional<std::string>;

// `text` itself.
std::string LiteralRule(std::string_view text);
// One of `chars` as the text of a JSON string spells it: quotes, backslashes and control characters
// are escaped. Each has one spelling.
RuleExpression JsonCharRule(const CharSet& chars);
// Its choices.
std::vector<std::string> JsonCharChoices(const CharSet& chars);
// One of `chars` as it is.
RuleExpression PlainCharRule(const CharSet& chars);

std::string SequenceRule(const std::vector<std::string>& parts);
// Nothing if there is no part.
RuleExpression ChoiceRule(const std::vector<std::string>& parts);
// most: -1 for no bound.
std::string RepeatRule(const std::string& part, int64_t least, int64_t most);
inline std::string OptionalRule(const std::string& part) { return "(" + part + ")?"; }

// The rules of a grammar.
class RuleSet {
 public:
  // A new name that begins with `prefix`. It needs a body before Text().
  std::string NewName(std::string_view prefix);
  void Define(const std::string& name, std::string_view body);
  // A rule with this body.
  std::string Add(std::string_view prefix, std::string_view body);
  // A rule of at most `most` characters; `choices`: for one of them. An escape counts as the
  // characters that it is written with. The masks of its last characters are slow, but it takes two
  // rules, whatever `most` is.
  std::string AddUpTo(int64_t most, const std::vector<std::string>& choices);
  // All rules, `root` first.
  std::string Text(std::string_view root) const;
  size_t size() const { return text_.size(); }
  // As kMostRulePrice.
  int64_t price() const { return price_ / 1000; }
  void Charge(int64_t price) { price_ += price * 1000; }

 private:
  std::string text_;
  int64_t price_ = 0;  // in thousandths
  int names_ = 0;
};

}  // namespace latte
