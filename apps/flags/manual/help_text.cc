#include "apps/flags/manual/help_text.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace latte {
namespace {

constexpr size_t kNarrowColumn = 8;  // of help below its names
constexpr size_t kMinWidth = 40;
constexpr size_t kMaxWidth = 100;

// Appends `text` from column `at` on, with further lines from `column` on. A newline in the text
// stays.
void AppendWrapped(std::string_view text, size_t width, size_t at, size_t column,
                   std::string* out) {
  while (true) {
    const size_t line_end = std::min(text.find('\n'), text.size());
    const size_t room = width - at;
    size_t end = line_end;
    if (line_end > room) {
      end = text.substr(0, room + 1).rfind(' ');
      // A word that is too long for a line is as long as it is.
      const size_t word = text.find_first_not_of(' ');
      if (end == std::string_view::npos || end < word)
        end = std::min(text.find(' ', word), line_end);
    }
    *out += text.substr(0, end);
    *out += '\n';
    if (end >= text.size()) return;
    text.remove_prefix(end + 1);  // and the space or newline
    if (text.empty()) return;
    if (text[0] != '\n') out->append(column, ' ');
    at = column;
  }
}

// Names and their help. A narrow terminal has no room for both in a line.
void AppendHelpRow(const std::string& names, const std::string& help, size_t width,
                   std::string* out) {
  const size_t help_column = width < 70 ? kNarrowColumn : 34;
  std::string row = fmt::format("  {}", names);
  if (row.size() + 2 > help_column) {
    AppendWrapped(row, width, 0, kNarrowColumn, out);
    row.clear();
  }
  row.resize(help_column, ' ');
  *out += row;
  AppendWrapped(help, width, help_column, help_column, out);
}

std::string WithMarks(const OptionInfo& option) {
  return option.help + (option.required ? " (required)" : "");
}

void AppendOptions(const CommandInfo& command, size_t width, std::string* out) {
  std::string arguments;
  for (const OptionInfo& option : command.options)
    if (option.positional())
      AppendHelpRow(NamesAndValue(option), WithMarks(option), width, &arguments);
  if (!arguments.empty()) *out += "\nArguments:\n" + arguments;
  for (const OptionGroup& group : GroupsOf(command)) {
    *out += fmt::format("\n{}:\n", group.name);
    for (const OptionInfo* option : group.options)
      AppendHelpRow(NamesAndValue(*option), WithMarks(*option), width, out);
  }
}

void AppendCommands(const CommandInfo& command, size_t width, std::string* out) {
  if (command.commands.empty()) return;
  *out += "\nCommands:\n";
  for (const CommandInfo& sub : command.commands)
    if (!sub.hidden) AppendHelpRow(sub.word(), sub.help, width, out);
}

bool HasVariables(const CommandInfo& command) {
  return std::any_of(command.options.begin(), command.options.end(), [](const OptionInfo& option) {
    return option.group == "Computation" && option.names.back() == "--dtype";
  });
}

// Where the rest is described.
std::string Pointers(const CommandInfo& command) {
  if (command.name.empty())
    return "latte COMMAND --help lists the options of a command. Options may be set by environment "
           "variables, LATTE_THREADS=8 for --threads 8, and of serve and batch by a file "
           "(--config). "
           "docs/cli.md lists all commands, docs/options.md all variables; man latte has both.";
  std::string out;
  if (HasVariables(command))
    out =
        "An environment variable sets an option that is not given: LATTE_THREADS=8 for "
        "--threads 8. ";
  if (FindOption(command, "--config") != nullptr)
    out += "A file of options (--config) sets those that neither a flag nor a variable sets. ";
  return out + (out.empty() ? "docs/cli.md describes all commands."
                            : "docs/options.md describes options, variables and the file.");
}

}  // namespace

std::string UsageLine(const CommandInfo& command) {
  std::string out = command.title();
  for (const OptionInfo& option : command.options) {
    if (!option.positional()) continue;
    const std::string word = option.names.front() + (option.repeatable ? "..." : "");
    out += option.required ? fmt::format(" {}", word) : fmt::format(" [{}]", word);
  }
  for (const OptionInfo& option : command.options)
    if (!option.positional() && option.required)
      out += fmt::format(" {} {}", option.names.back(), option.value);
  return out + (command.commands.empty() ? " [OPTIONS]" : " COMMAND [OPTIONS]");
}

std::string NamesAndValue(const OptionInfo& option) {
  if (option.positional()) return option.names.front();
  // Long names stand below each other.
  const std::string indent = option.names.front().starts_with("--") ? "    " : "";
  return fmt::format("{}{}{}{}{}", indent, fmt::join(option.names, ", "),
                     option.value.empty() ? "" : " ", option.value, option.repeatable ? "..." : "");
}

std::string HelpText(const CommandInfo& command, int columns) {
  const size_t width =
      columns <= 0 ? kMaxWidth : std::clamp(static_cast<size_t>(columns), kMinWidth, kMaxWidth);
  std::string out;
  AppendWrapped(command.help, width, 0, 0, &out);
  out += '\n';
  AppendWrapped("Usage: " + UsageLine(command), width, 0, 0, &out);
  AppendCommands(command, width, &out);
  AppendOptions(command, width, &out);
  if (!command.footer.empty()) {
    out += '\n';
    AppendWrapped(command.footer, width, 0, 0, &out);
  }
  out += '\n';
  AppendWrapped(Pointers(command), width, 0, 0, &out);
  return out;
}

}  // namespace latte
