// latte help.
#include <string>
#include <vector>

#include <unistd.h>

#include "apps/flags/command.h"
#include "apps/flags/command_words.h"
#include "apps/flags/manual/help_text.h"
#include "apps/flags/manual/man_page.h"
#include "apps/terminal/screen.h"

#ifndef LATTE_VERSION
#error "the build passes LATTE_VERSION"
#endif

namespace latte {
namespace {

struct HelpFlags {
  FlagSet program;
  std::vector<std::string> command;
  bool man = false;
};

Status HelpCommand(const HelpFlags& flags) {
  const CommandInfo program = flags.program.Info();
  if (flags.man) return Print(ManPage(program, LATTE_VERSION));
  std::vector<std::string> words = {"latte"};
  words.insert(words.end(), flags.command.begin(), flags.command.end());
  words.emplace_back("--help");
  LATTE_ASSIGN_OR_RETURN(const CheckedWords checked, CheckWords(words, program));
  return Print(HelpText(*checked.command, ColumnsOf(STDOUT_FILENO)));
}

}  // namespace

Command AddHelp(const FlagSet& app) {
  auto flags = std::make_shared<HelpFlags>(HelpFlags{app, {}, false});
  const FlagSet sub = app.AddCommand("help", "Help for a command");
  sub.Add("COMMAND", flags->command, "a command, such as run or bench model");
  sub.AddSwitch("--man", flags->man, "the man page, as roff");
  return {sub, [flags] { return HelpCommand(*flags); }};
}

}  // namespace latte
