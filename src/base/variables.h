// Environment variables.
#pragma once

#include <cstdlib>
#include <string>

namespace latte {

// The value of the variable `name`; empty if it is not set.
inline std::string Env(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace latte
