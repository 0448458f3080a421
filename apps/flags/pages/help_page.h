// The text of --help.
#pragma once

#include <string>

#include "apps/flags/command_info.h"

namespace latte {

// "latte run [MODEL] [OPTIONS]".
std::string UsageLine(const CommandInfo& command);

// "-n, --max-new-tokens N"; of an argument: "MODEL".
std::string NamesAndValue(const OptionInfo& option);

// Usage, arguments, options by group, commands and notes, at most 100 columns wide.
std::string HelpPage(const CommandInfo& command);

}  // namespace latte
