// A program with some of the commands and options of latte, for tests of aliases.
#pragma once

#include <initializer_list>
#include <string>

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
      TestCommand("serve", {{"--port"},
                            {"--api-key"},
                            {"--served-model-name"},
                            {"-c", "--context"},
                            {"-s", "--seed"},
                            {"-t", "--threads"},
                            {"--cache-dir"},
                            {"--max-batch-tokens"}}),
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
