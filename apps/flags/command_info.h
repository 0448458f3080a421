// Commands and their options as plain lists. Help, completion, man page and docs/cli.md are written
// from them, and command lines are checked with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace latte {

// An option or an argument of a command.
struct OptionInfo {
  std::vector<std::string> names;  // "-n", "--max-new-tokens"; of an argument: "MODEL"
  std::string value;               // the word for its value, "N" or "bf16|f16|f32"; empty: a switch
  std::string help;                // one line
  std::string group;               // heading in --help; empty: of an argument
  bool required = false;
  bool repeatable = false;  // every value counts; of other options, the last one

  bool positional() const { return !names.front().starts_with('-'); }
};

struct CommandInfo {
  std::string name;    // "bench model"; "": the program itself
  std::string help;    // one line
  std::string footer;  // examples and notes
  bool hidden = false;
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;

  std::string title() const { return name.empty() ? "latte" : "latte " + name; }
  // The last word of its name.
  std::string word() const { return name.substr(name.rfind(' ') + 1); }
};

// The option of `command` with this name, or null.
const OptionInfo* FindOption(const CommandInfo& command, std::string_view name);

// The command of `above` with this last word, or null.
const CommandInfo* FindCommand(const CommandInfo& above, std::string_view word);

// The names of its options, "-n" and "--max-new-tokens".
std::vector<std::string> OptionNames(const CommandInfo& command);

// The last words of the commands below it that are not hidden.
std::vector<std::string> CommandNames(const CommandInfo& above);

// The accepted values of an option: "bf16", "f16", "f32"; empty: no list.
std::vector<std::string> ChoicesOf(const OptionInfo& option);

// The options of a group.
struct OptionGroup {
  std::string name;
  std::vector<const OptionInfo*> options;
};
// The groups of a command's options, the everyday ones first, "Expert" and "Other" last.
std::vector<OptionGroup> GroupsOf(const CommandInfo& command);

}  // namespace latte
