// The environment variables that Latte reads, except the variables of options.
#pragma once

#include <span>
#include <string_view>

namespace latte {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view meaning;  // one line
};

std::span<const EnvironmentVariable> EnvironmentVariables();

}  // namespace latte
