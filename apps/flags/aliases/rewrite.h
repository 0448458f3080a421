// Replaces flags of other programs (aliases.h) by ours before the command line is parsed.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

#include "apps/flags/command_info.h"

namespace latte {

struct CommandWords {
  std::vector<std::string> words;  // the program, the command and its own flags
  std::vector<std::string> notes;  // for the user: what was replaced, and what is ignored
};

// `words`: as main gets them. `program`: its commands, as its info lists them.
// Errors: kInvalidArgument for a missing or wrong value, as a UsageError; kUnsupported for what Latte lacks. Both name
// the flag that was given.
[[nodiscard]] Result<CommandWords> RewriteAliases(const std::vector<std::string>& words,
                                                  const CommandInfo& program);

}  // namespace latte
