// The text of --help.
#pragma once

#include <string>

#include "apps/flags/command_info.h"

namespace latte {

// "latte run [MODEL] [OPTIONS]".
std::string UsageLine(const CommandInfo& command);

// "-n, --max-new-tokens N"; of an argument: "MODEL".
std::string NamesAndValue(const OptionInfo& option);

// Usage, arguments, options by group, commands and notes, as wide as the terminal: 40 to 100
// columns, and 100 where `columns` is 0.
std::string HelpText(const CommandInfo& command, int columns);

}  // namespace latte
