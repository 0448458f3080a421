// Compiles story_grammar.json to rules. story_text.cc generates and parses texts.
#include "lab/eval/story_grammar.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr int64_t kMaxGrammarBytes = 4 << 20;  // tiny's grammar has 33 thousand
constexpr JsonLimits kLimits = {.max_depth = 8, .max_elements = 500'000};
constexpr size_t kMaxNesting = 32;  // nested choices

Result<Json> GetArray(const Json& parent, std::string_view key) {
  LATTE_ASSIGN_OR_RETURN(Json value, parent.Get(key));
  if (!value.is_array()) return Corrupt(fmt::format("{}: expected an array", value.path()));
  return value;
}

Result<Json> GetObject(const Json& parent, std::string_view key) {
  LATTE_ASSIGN_OR_RETURN(Json value, parent.Get(key));
  if (!value.is_object()) return Corrupt(fmt::format("{}: expected an object", value.path()));
  return value;
}

// An array of `size` strings, or of any number of strings if `size` is 0.
Result<std::vector<std::string>> Strings(const Json& array, size_t size) {
  if (!array.is_array() || (size != 0 && array.size() != size))
    return Corrupt(fmt::format("{}: expected an array of {} strings", array.path(),
                               size == 0 ? std::string("one or more") : std::to_string(size)));
  std::vector<std::string> out;
  for (size_t i = 0; i < array.size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(std::string text, array.At(i).AsString());
    out.push_back(std::move(text));
  }
  if (out.empty()) return Corrupt(fmt::format("{}: expected at least one string", array.path()));
  return out;
}

}  // namespace

// Builds a grammar from its JSON document.
class StoryCompiler {
 public:
  Result<StoryGrammar> Compile(const Json& root, std::string where) {
    out_.where_ = std::move(where);
    LATTE_RETURN_IF_ERROR(ReadTables(root));
    LATTE_RETURN_IF_ERROR(ReadVariables(root));
    LATTE_RETURN_IF_ERROR(ReadChecks(root, "distinct", false));
    LATTE_RETURN_IF_ERROR(ReadChecks(root, "same", true));
    LATTE_RETURN_IF_ERROR(ReadRules(root));
    return std::move(out_);
  }

 private:
  using Node = StoryGrammar::Node;

  // The branches of each open choice of an alternative, innermost last.
  struct OpenChoice {
    std::vector<StoryGrammar::Sequence> branches{1};
  };

  Status ReadTables(const Json& root) {
    LATTE_ASSIGN_OR_RETURN(const Json tables, GetObject(root, "tables"));
    return tables.ForEachMember([&](const std::string& name, const Json& value) -> Status {
      StoryGrammar::Table table;
      LATTE_ASSIGN_OR_RETURN(const Json attributes, GetArray(value, "attributes"));
      LATTE_ASSIGN_OR_RETURN(table.attributes, Strings(attributes, 0));
      LATTE_ASSIGN_OR_RETURN(const Json rows, GetArray(value, "rows"));
      for (size_t i = 0; i < rows.size(); ++i) {
        LATTE_ASSIGN_OR_RETURN(auto row, Strings(rows.At(i), table.attributes.size()));
        table.rows.push_back(std::move(row));
      }
      if (table.rows.empty())
        return Corrupt(fmt::format("{}: expected at least one row", rows.path()));
      table_index_[name] = out_.tables_.size();
      out_.tables_.push_back(std::move(table));
      return {};
    });
  }

  Status ReadVariables(const Json& root) {
    LATTE_ASSIGN_OR_RETURN(const Json variables, GetObject(root, "variables"));
    return variables.ForEachMember([&](const std::string& name, const Json& value) -> Status {
      LATTE_ASSIGN_OR_RETURN(const std::string table, value.AsString());
      const auto found = table_index_.find(table);
      if (found == table_index_.end())
        return Corrupt(fmt::format("{}: expected the name of a table, found '{}'", value.path(),
                                   Printable(table)));
      out_.variable_index_[name] = out_.variables_.size();
      out_.variables_.push_back({name, found->second, {}});
      return {};
    });
  }

  Status ReadChecks(const Json& root, std::string_view key, bool equal) {
    LATTE_ASSIGN_OR_RETURN(const Json entries, GetArray(root, key));
    for (size_t i = 0; i < entries.size(); ++i) {
      const Json entry = entries.At(i);
      LATTE_ASSIGN_OR_RETURN(const auto names, Strings(entry, equal ? 4 : 3));
      const std::string& other = equal ? names[2] : names[1];
      LATTE_ASSIGN_OR_RETURN(const Node a,
                             Slot(entry.path(), names[0], equal ? names[1] : names[2]));
      LATTE_ASSIGN_OR_RETURN(const Node b, Slot(entry.path(), other, names.back()));
      out_.variables_[a.variable].checks.push_back({a.attribute, b.variable, b.attribute, equal});
      out_.variables_[b.variable].checks.push_back({b.attribute, a.variable, a.attribute, equal});
    }
    return {};
  }

  Status ReadRules(const Json& root) {
    LATTE_ASSIGN_OR_RETURN(const Json rules, GetObject(root, "rules"));
    LATTE_RETURN_IF_ERROR(rules.ForEachMember([&](const std::string& name, const Json&) -> Status {
      rule_index_[name] = out_.branches_.size();
      out_.branches_.emplace_back();
      return {};
    }));
    const auto start = rule_index_.find("story");
    if (start == rule_index_.end())
      return Corrupt(fmt::format("{}: expected a rule 'story'", rules.path()));
    out_.start_ = start->second;
    return rules.ForEachMember([&](const std::string& name, const Json& value) -> Status {
      LATTE_ASSIGN_OR_RETURN(const auto alternatives, Strings(value, 0));
      for (const std::string& text : alternatives) {
        LATTE_ASSIGN_OR_RETURN(auto sequence, Alternative(value.path(), text));
        const size_t added = AddSequence(std::move(sequence));
        out_.branches_[rule_index_.at(name)].push_back(added);
      }
      return {};
    });
  }

  Result<StoryGrammar::Sequence> Alternative(const std::string& path, std::string_view text) {
    const auto bad = [&](size_t at, std::string_view what) {
      return Corrupt(
          fmt::format("{}: expected {} at column {} of '{}'", path, what, at + 1, Printable(text)));
    };
    std::vector<OpenChoice> open(1);
    size_t at = 0;
    while (at < text.size()) {
      StoryGrammar::Sequence& sequence = open.back().branches.back();
      const size_t end = std::min(text.find_first_of("{}<>[|]", at), text.size());
      if (end > at) {
        sequence.push_back({.text = std::string(text.substr(at, end - at))});
        at = end;
      } else if (text[at] == '{' || text[at] == '<') {
        const size_t close = text.find(text[at] == '{' ? '}' : '>', at);
        if (close == std::string_view::npos) return bad(at, "a bracket that is closed again");
        LATTE_ASSIGN_OR_RETURN(Node node, Reference(path, text.substr(at, close - at)));
        sequence.push_back(std::move(node));
        at = close + 1;
      } else if (text[at] == '[') {
        if (open.size() > kMaxNesting) return bad(at, "fewer choices inside each other");
        open.emplace_back();
        ++at;
      } else if (open.size() == 1) {
        return bad(at, "no '|', ']', '}' or '>' outside a choice");
      } else if (text[at] == '|') {
        open.back().branches.emplace_back();
        ++at;
      } else if (text[at] == ']') {
        CloseChoice(open);
        ++at;
      } else {
        return bad(at, "an opening bracket before the closing one");
      }
    }
    if (open.size() != 1) return bad(text.size(), "']'");
    return std::move(open[0].branches[0]);
  }

  void CloseChoice(std::vector<OpenChoice>& open) {
    std::vector<size_t> branches;
    for (StoryGrammar::Sequence& branch : open.back().branches)
      branches.push_back(AddSequence(std::move(branch)));
    open.pop_back();
    open.back().branches.back().push_back(
        {.kind = Node::Kind::kBranches, .branches = out_.branches_.size()});
    out_.branches_.push_back(std::move(branches));
  }

  // "{hero.name" or "<lost": the text between the brackets, including the opening one.
  Result<Node> Reference(const std::string& path, std::string_view text) {
    const std::string_view name = text.substr(1);
    if (text[0] == '{') {
      const size_t dot = name.find('.');
      if (dot == std::string_view::npos)
        return Corrupt(fmt::format("{}: expected {{variable.attribute}}, found '{}}}'", path,
                                   Printable(text)));
      return Slot(path, name.substr(0, dot), name.substr(dot + 1));
    }
    const auto rule = rule_index_.find(name);
    if (rule == rule_index_.end())
      return Corrupt(
          fmt::format("{}: expected the name of a rule, found '{}>'", path, Printable(text)));
    return Node{.kind = Node::Kind::kBranches, .branches = rule->second};
  }

  Result<Node> Slot(const std::string& path, std::string_view variable,
                    std::string_view attribute) const {
    const auto found = out_.variable_index_.find(variable);
    if (found == out_.variable_index_.end())
      return Corrupt(fmt::format("{}: expected the name of a variable, found '{}'", path,
                                 Printable(variable)));
    const auto& names = out_.tables_[out_.variables_[found->second].table].attributes;
    const auto name = std::find(names.begin(), names.end(), attribute);
    if (name == names.end())
      return Corrupt(fmt::format("{}: expected an attribute of '{}', found '{}'", path,
                                 Printable(variable), Printable(attribute)));
    return Node{.kind = Node::Kind::kSlot,
                .variable = found->second,
                .attribute = static_cast<size_t>(name - names.begin())};
  }

  size_t AddSequence(StoryGrammar::Sequence sequence) {
    out_.sequences_.push_back(std::move(sequence));
    return out_.sequences_.size() - 1;
  }

  StoryGrammar out_;
  std::map<std::string, size_t, std::less<>> table_index_;
  std::map<std::string, size_t, std::less<>> rule_index_;
};

Result<StoryGrammar> StoryGrammar::Load(const std::string& path) {
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxGrammarBytes));
  return FromJson(text, path);
}

Result<StoryGrammar> StoryGrammar::FromJson(std::string_view text, std::string where) {
  LATTE_ASSIGN_OR_RETURN(const Json root, Json::Parse(text, where, kLimits));
  return StoryCompiler().Compile(root, std::move(where));
}

Result<std::vector<std::string>> StoryGrammar::Values(std::string_view variable,
                                                      std::string_view attribute) const {
  const auto found = variable_index_.find(variable);
  if (found == variable_index_.end())
    return Corrupt(fmt::format("{}: expected a variable '{}'", where_, variable));
  const Table& table = tables_[variables_[found->second].table];
  const auto name = std::find(table.attributes.begin(), table.attributes.end(), attribute);
  if (name == table.attributes.end())
    return Corrupt(
        fmt::format("{}: expected an attribute '{}' of '{}'", where_, attribute, variable));
  std::vector<std::string> out;
  for (const auto& row : table.rows) {
    const std::string& value = row[static_cast<size_t>(name - table.attributes.begin())];
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  }
  return out;
}

bool StoryGrammar::Fits(size_t variable, size_t row, const Bindings& bound) const {
  return std::all_of(
      variables_[variable].checks.begin(), variables_[variable].checks.end(), [&](const Check& c) {
        if (bound[c.other] == kUnbound) return true;
        const bool equal =
            Word(variable, row, c.attribute) == Word(c.other, bound[c.other], c.other_attribute);
        return equal == c.equal;
      });
}

}  // namespace latte
