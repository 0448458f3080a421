// A program with some of the commands and options of latte, for tests of aliases.
#pragma once

#include <initializer_list>
#include <string>

#include "apps/flags/aliases/aliases.h"
#include "apps/flags/command_info.h"

namespace latte {

// A command with MODEL, --json and options with a value.
inline CommandInfo TestCommand(const std::string& name,
                               std::initializer_list<std::vector<std::string>> options) {
  CommandInfo out;
  out.name = name;
  out.options.push_back({{"MODEL"}, "TEXT", "", "", false, false});
  for (const std::vector<std::string>& names : options)
    out.options.push_back({names, "TEXT", "", "Options", false, false});
  out.options.push_back({{"--json"}, "", "", "Output", false, false});
  out.options.push_back({{"-h", "--help"}, "", "", "Other", false, false});
  return out;
}

// `command` with the options that aliases of servers stand for.
inline CommandInfo WithOptionsOfAliases(CommandInfo command) {
  for (const Alias& alias : Aliases()) {
    const std::string name(alias.flag.substr(0, alias.flag.find(' ')));
    const bool of_others = alias.scope == AliasScope::kAll;
    if (name.empty() || of_others || FindOption(command, name) != nullptr) continue;
    const bool alone = alias.words == AliasWords::kNone && name == alias.flag;
    command.options.push_back({{name}, alone ? "" : "TEXT", "", "Options", false, false});
  }
  return command;
}

inline CommandInfo TestProgram() {
  CommandInfo out;
  out.commands = {
      TestCommand("run", {{"-p", "--prompt"},
                          {"-f", "--prompt-file"},
                          {"-n", "--max-new-tokens"},
                          {"-c", "--context"},
                          {"--temperature"},
                          {"--repetition-penalty"},
                          {"-s", "--seed"},
                          {"-t", "--threads"},
                          {"--max-batch-tokens"}}),
      WithOptionsOfAliases(TestCommand("serve", {{"--port"},
                                                 {"--api-key"},
                                                 {"--served-model-name"},
                                                 {"-c", "--context"},
                                                 {"-s", "--seed"},
                                                 {"-t", "--threads"},
                                                 {"--cache-dir"},
                                                 {"--max-batch-tokens"}})),
      TestCommand("batch", {{"-i", "--input"},
                            {"-o", "--output"},
                            {"-c", "--context"},
                            {"-s", "--seed"},
                            {"-t", "--threads"},
                            {"--max-batch-tokens"}}),
  };
  CommandInfo bench;
  bench.name = "bench";
  bench.commands = {TestCommand("bench model", {{"-t", "--threads"}})};
  out.commands.push_back(bench);
  out.options.push_back({{"-h", "--help"}, "", "", "Other", false, false});
  out.options.push_back({{"-V", "-v", "--version"}, "", "", "Other", false, false});
  return out;
}

}  // namespace latte
