// A story language as data (story_grammar.json of a model folder): one grammar writes texts and
// judges them. It can say neither numbers nor free text, and a text whose judgement takes more than
// a fixed amount of work is refused.
//
//   {"rules": {name: [alternative, …]},  "tables": {name: {"attributes": […], "rows": [[…], …]}},
//    "variables": {name: table},         "distinct": [[variable, variable, attribute], …],
//    "same": [[variable, attribute, variable, attribute], …]}
//
// Notation of an alternative:  {hero.name}  the attribute `name` of the row bound to `hero`
//                              <lost>       another rule
//                              [a|b|]       a choice; branches may be empty and may nest
//
// A variable is bound to a row of its table where it is first met, and every later slot of that
// variable agrees with that row. Rows of two `distinct` variables differ in the attribute; the two
// values of a `same` entry are equal. A text starts with the rule "story".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/base/random.h"

namespace latte {

struct StoryVerdict {
  bool accepted = false;
  size_t at = 0;    // of a refused text: number of bytes that were parsed
  std::string why;  // of a refused text: what was found there and what was expected
};

// Immutable, thread-safe.
class StoryGrammar {
 public:
  // Errors: kNotFound without the file; kCorrupt naming the key, or the rule and the column.
  [[nodiscard]] static Result<StoryGrammar> Load(const std::string& path);
  // The same from text; `where` names it in messages.
  [[nodiscard]] static Result<StoryGrammar> FromJson(std::string_view text, std::string where);

  // A random text. Errors: kCorrupt if no row fits a variable, or if the text does not end.
  [[nodiscard]] Result<std::string> Generate(Random& random) const;

  // Whether `text`, which may be any bytes, is a text of the language.
  StoryVerdict Parse(std::string_view text) const;

  // The distinct values of an attribute, in the order of the table.
  // Errors: kCorrupt if the grammar has no such variable or attribute.
  [[nodiscard]] Result<std::vector<std::string>> Values(std::string_view variable,
                                                        std::string_view attribute) const;

 private:
  friend class StoryCompiler;
  friend class StoryParser;
  friend class StoryWriter;

  struct Node {
    enum class Kind { kText, kSlot, kBranches };
    Kind kind = Kind::kText;
    std::string text;
    size_t variable = 0;   // of a slot
    size_t attribute = 0;  // of a slot: column of the variable's table
    size_t branches = 0;   // of a rule or a choice: index into branches_
  };
  using Sequence = std::vector<Node>;
  struct Table {
    std::vector<std::string> attributes;
    std::vector<std::vector<std::string>> rows;  // [rows][attributes]
  };
  // A condition on a variable and another one, checked when both are bound.
  struct Check {
    size_t attribute = 0;
    size_t other = 0;
    size_t other_attribute = 0;
    bool equal = false;
  };
  struct Variable {
    std::string name;
    size_t table = 0;
    std::vector<Check> checks;
  };
  // The row of each variable, or kUnbound.
  using Bindings = std::vector<size_t>;
  static constexpr size_t kUnbound = SIZE_MAX;

  StoryGrammar() = default;
  const std::string& Word(size_t variable, size_t row, size_t attribute) const {
    return tables_[variables_[variable].table].rows[row][attribute];
  }
  size_t Rows(size_t variable) const { return tables_[variables_[variable].table].rows.size(); }
  // Whether binding `row` to `variable` satisfies every condition with the bound variables.
  bool Fits(size_t variable, size_t row, const Bindings& bound) const;

  std::string where_;
  std::vector<Sequence> sequences_;
  std::vector<std::vector<size_t>> branches_;  // indices into sequences_; the rules come first
  size_t start_ = 0;                           // index into branches_ of "story"
  std::vector<Table> tables_;
  std::vector<Variable> variables_;
  std::map<std::string, size_t, std::less<>> variable_index_;
};

}  // namespace latte
