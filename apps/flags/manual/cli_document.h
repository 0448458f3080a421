// docs/cli.md: all commands with their options.
#pragma once

#include <string>

#include "apps/flags/command_info.h"

namespace latte {

std::string CliDocument(const CommandInfo& program);

}  // namespace latte
