// Scripts that complete command lines, for bash, zsh and fish.
#pragma once

#include <string>
#include <string_view>

#include "latte/status.h"

#include "apps/flags/command_info.h"

namespace latte {

// The script for `shell`: commands, options, choices, files where a value is one, and models, which
// it asks `latte completion --models` for. Errors: kInvalidArgument for another shell.
[[nodiscard]] Result<std::string> CompletionScript(std::string_view shell,
                                                   const CommandInfo& program);

}  // namespace latte
