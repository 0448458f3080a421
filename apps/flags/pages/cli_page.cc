#include "apps/flags/pages/cli_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/flags/pages/help_page.h"

namespace latte {
namespace {

constexpr std::string_view kCliHead = R"(# Command line

<!-- `latte inspect --commands` writes this page. -->

`latte COMMAND --help` prints the same text, and `man latte` after `make install`. [options.md](options.md) describes the
options of engines, requests and servers: their variables, ranges and names in the library, the file of options, further
environment variables, and the names that options have in other programs.

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

void AppendTableRow(const OptionInfo& option, std::string* out) {
  std::string names = NamesAndValue(option);
  names.erase(0, names.find_first_not_of(' '));
  *out += fmt::format("| `{}` | {}{} |\n", Cell(names), Cell(option.help),
                      option.required ? " (required)" : "");
}

void AppendContents(const CommandInfo& command, std::string* out) {
  if (command.hidden) return;
  *out += fmt::format("| [`{}`](#{}) | {} |\n", command.title(), Anchor(command), command.help);
  for (const CommandInfo& sub : command.commands) AppendContents(sub, out);
}

void AppendSection(const CommandInfo& command, std::string* out) {
  if (command.hidden) return;
  *out += fmt::format("\n## {}\n\n{}.\n\n```text\n{}\n```\n", command.title(), command.help,
                      UsageLine(command));
  const bool arguments = std::any_of(command.options.begin(), command.options.end(),
                                     [](const OptionInfo& option) { return option.positional(); });
  if (arguments) *out += "\n| Argument | |\n|---|---|\n";
  for (const OptionInfo& option : command.options)
    if (option.positional()) AppendTableRow(option, out);
  for (const OptionGroup& group : GroupsOf(command)) {
    if (group.name == "Other") continue;
    *out += fmt::format("\n| {} | |\n|---|---|\n", group.name);
    for (const OptionInfo* option : group.options) AppendTableRow(*option, out);
  }
  if (!command.footer.empty()) *out += fmt::format("\n```text\n{}\n```\n", command.footer);
  for (const CommandInfo& sub : command.commands) AppendSection(sub, out);
}

}  // namespace

std::string CliPage(const CommandInfo& program) {
  std::string out(kCliHead);
  for (const CommandInfo& command : program.commands) AppendContents(command, &out);
  for (const CommandInfo& command : program.commands) AppendSection(command, &out);
  return out;
}

}  // namespace latte
