#include "apps/flags/manual/cli_document.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/flags/manual/help_text.h"

namespace latte {
namespace {

constexpr std::string_view kCliHead = R"(# Command line

<!-- `latte inspect --commands` writes this page. -->

`latte COMMAND --help` prints the same text, and `man latte` after `make install`. [options.md](options.md) describes the
options of engines, requests and servers: their variables, ranges and names in the library, the file of options, further
environment variables, and the names that options have in other programs.

* Options that several commands have are described once, under [Shared options](#shared-options); `latte COMMAND --help` lists all
  options of a command.
* An option is `--NAME VALUE` or `--NAME=VALUE`, a short one `-n VALUE`, `-nVALUE` or `-n=VALUE`. `--max_new_tokens` is
  `--max-new-tokens`. If an option is repeated, the last value counts, except for options with `...`: all their values count.
* Words after `--` are arguments, even if they begin with a dash.
* Results are written to standard output, everything else to standard error.
* A job of more than two seconds shows there how much is done and how much time is left: in one line that is updated on a
  terminal, in a line after three seconds and every half minute elsewhere.
* Exit codes: 0 done, 1 failure while running, 2 bad usage or bad input, 3 a bug in Latte.

`latte completion bash`, `zsh` and `fish` print a script that completes commands, options, values and models; `make install`
puts them where the shells look for them.

| Command | |
|---|---|
)";

std::string Cell(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return text;
}

std::string Anchor(const CommandInfo& command) {
  std::string out = command.title();
  std::replace(out.begin(), out.end(), ' ', '-');
  return out;
}

std::string TableRow(const OptionInfo& option) {
  std::string names = NamesAndValue(option);
  names.erase(0, names.find_first_not_of(' '));
  return fmt::format("| `{}` | {}{} |\n", Cell(names), Cell(option.help),
                     option.required ? " (required)" : "");
}

template <class Visit>
void ForEachShown(const std::vector<CommandInfo>& commands, const Visit& visit) {
  for (const CommandInfo& command : commands) {
    if (command.hidden) continue;
    visit(command);
    ForEachShown(command.commands, visit);
  }
}

// The groups of options whose tables the page has.
std::vector<OptionGroup> ShownGroups(const CommandInfo& command) {
  std::vector<OptionGroup> out = GroupsOf(command);
  std::erase_if(out, [](const OptionGroup& group) { return group.name == "Other"; });
  return out;
}

// The rows of options that several commands have, word for word. The page has them once, in tables
// by the names of their groups, in the order in which commands have them.
class SharedOptions {
 public:
  explicit SharedOptions(const CommandInfo& program) {
    std::map<std::string, int> counts;
    ForEachRow(program, [&](const std::string&, const std::string& row) { ++counts[row]; });
    ForEachRow(program, [&](const std::string& group, const std::string& row) {
      if (counts[row] > 1 && rows_.insert(row).second) RowsOf(group) += row;
    });
  }

  bool Has(const OptionInfo& option) const { return rows_.contains(TableRow(option)); }
  void Append(std::string* out) const {
    *out +=
        "\n## Shared options\n\nSeveral commands have these options; each section names its own.\n";
    for (const auto& [name, rows] : tables_)
      *out += fmt::format("\n| {} | |\n|---|---|\n{}", name, rows);
  }

 private:
  template <class Visit>
  static void ForEachRow(const CommandInfo& program, const Visit& visit) {
    ForEachShown(program.commands, [&](const CommandInfo& command) {
      for (const OptionGroup& group : ShownGroups(command))
        for (const OptionInfo* option : group.options) visit(group.name, TableRow(*option));
    });
  }
  std::string& RowsOf(const std::string& group) {
    for (auto& [name, rows] : tables_)
      if (name == group) return rows;
    return tables_.emplace_back(group, "").second;
  }

  std::set<std::string> rows_;
  std::vector<std::pair<std::string, std::string>> tables_;  // group, rows
};

void AppendContents(const CommandInfo& program, std::string* out) {
  ForEachShown(program.commands, [&](const CommandInfo& command) {
    *out += fmt::format("| [`{}`](#{}) | {} |\n", command.title(), Anchor(command), command.help);
  });
}

// Tables of the options that no other command has, then the names of the others.
void AppendOptions(const CommandInfo& command, const SharedOptions& shared, std::string* out) {
  std::vector<std::string> names;
  for (const OptionGroup& group : ShownGroups(command)) {
    std::string rows;
    for (const OptionInfo* option : group.options) {
      if (shared.Has(*option))
        names.push_back(fmt::format("`{}`", option->names.back()));
      else
        rows += TableRow(*option);
    }
    if (!rows.empty()) *out += fmt::format("\n| {} | |\n|---|---|\n{}", group.name, rows);
  }
  if (!names.empty())
    *out += fmt::format("\n[Shared options](#shared-options): {}.\n", fmt::join(names, ", "));
}

void AppendSection(const CommandInfo& command, const SharedOptions& shared, std::string* out) {
  *out += fmt::format("\n## {}\n\n{}.\n\n```text\n{}\n```\n", command.title(), command.help,
                      UsageLine(command));
  const bool arguments = std::any_of(command.options.begin(), command.options.end(),
                                     [](const OptionInfo& option) { return option.positional(); });
  if (arguments) *out += "\n| Argument | |\n|---|---|\n";
  for (const OptionInfo& option : command.options)
    if (option.positional()) *out += TableRow(option);
  AppendOptions(command, shared, out);
  if (!command.footer.empty()) *out += fmt::format("\n```text\n{}\n```\n", command.footer);
}

}  // namespace

std::string CliDocument(const CommandInfo& program) {
  std::string out(kCliHead);
  AppendContents(program, &out);
  const SharedOptions shared(program);
  ForEachShown(program.commands,
               [&](const CommandInfo& command) { AppendSection(command, shared, &out); });
  shared.Append(&out);
  return out;
}

}  // namespace latte
