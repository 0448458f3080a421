// The man page latte(1).
#pragma once

#include <string>
#include <string_view>

#include "apps/flags/command_info.h"

namespace latte {

// In roff, with the macros of man(7).
std::string ManPage(const CommandInfo& program, std::string_view version);

}  // namespace latte
