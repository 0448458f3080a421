#include "apps/flags/manual/man_page.h"

#include <fmt/format.h>

#include "apps/flags/manual/environment.h"
#include "apps/flags/manual/help_text.h"

namespace latte {
namespace {

constexpr std::string_view kExitStatus[][2] = {
    {"0", "done"},
    {"1", "failure while running: memory ran out, a file could not be written, a server is gone"},
    {"2", "bad usage or bad input"},
    {"3", "a bug in Latte"},
};

// The name in roff of a character that it would read as a command or print as another one: ' as ’,
// ~ as ˜.
std::string_view NameInRoff(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '`':
      return "\\(ga";
    case '"':
      return "\\(dq";
    case '|':
      return "|\\:";  // a line may end after it
    case '~':
      return "\\(ti";
    case '^':
      return "\\(ha";
    default:
      return {};
  }
}

// `text` as roff reads it: literal.
std::string Escaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && (i == 0 || text[i - 1] == '\n')) out += "\\&";
    const std::string_view name = NameInRoff(c);
    if (name.empty())
      out += c;
    else
      out += name;
  }
  return out;
}

void AppendEntry(std::string_view tag, std::string_view text, std::string* out) {
  *out += fmt::format(".TP\n.B {}\n{}\n", Escaped(tag), Escaped(text));
}

std::string WithoutIndent(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

void AppendOption(const OptionInfo& option, std::string* out) {
  AppendEntry(WithoutIndent(NamesAndValue(option)),
              option.help + (option.required ? " (required)" : ""), out);
}

// A paragraph; line breaks stay if some lines are indented.
void AppendFooter(const std::string& text, std::string* out) {
  if (text.empty()) return;
  const bool literal = text.find("\n  ") != std::string::npos;
  const std::string escaped = Escaped(text);
  *out += literal ? fmt::format(".PP\n.nf\n{}\n.fi\n", escaped) : fmt::format(".PP\n{}\n", escaped);
}

void AppendManCommand(const CommandInfo& command, std::string* out) {
  if (command.hidden) return;
  *out += fmt::format(".SS {}\n{}.\n", Escaped(UsageLine(command)), Escaped(command.help));
  for (const OptionInfo& option : command.options)
    if (option.positional()) AppendOption(option, out);
  for (const OptionGroup& group : GroupsOf(command)) {
    if (group.name == "Other") continue;
    *out += fmt::format(".PP\n.I {}\n", Escaped(group.name));
    for (const OptionInfo* option : group.options) AppendOption(*option, out);
  }
  AppendFooter(command.footer, out);
  for (const CommandInfo& sub : command.commands) AppendManCommand(sub, out);
}

}  // namespace

std::string ManPage(const CommandInfo& program, std::string_view version) {
  std::string out = fmt::format(
      ".TH LATTE 1 \"\" \"latte {0}\" \"Latte\"\n.SH NAME\nlatte \\- "
      "inference for models with Multi\\-head Latent Attention\n",
      Escaped(version));
  out += ".SH SYNOPSIS\n.B latte\n.I COMMAND\n[\\fIMODEL\\fR] [\\fIOPTIONS\\fR]\n";
  out += fmt::format(".SH DESCRIPTION\n{}.\n", Escaped(program.help));
  AppendFooter(program.footer, &out);
  out += ".SH COMMANDS\n";
  for (const CommandInfo& command : program.commands) AppendManCommand(command, &out);
  out +=
      ".SH ENVIRONMENT\nA variable LATTE_NAME sets the option \\-\\-name of engines, requests and "
      "servers that is not given.\n";
  for (const EnvironmentVariable& variable : EnvironmentVariables())
    AppendEntry(variable.name, variable.meaning, &out);
  out += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitStatus) AppendEntry(code, meaning, &out);
  return out;
}

}  // namespace latte
