// The environment variables that Latte reads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latte {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view meaning;  // one line
};

// Those that are no variables of options.
std::span<const EnvironmentVariable> EnvironmentVariables();

// A note for each variable LATTE_… of `environment` ("NAME=value") that Latte does not read, but
// whose name is near one that it does. Other variables, for instance of a build or of Kubernetes,
// belong to other programs. The last entry is null.
std::vector<std::string> NotesOnVariables(const char* const* environment);

}  // namespace latte
