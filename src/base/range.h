// The messages for a number outside its range.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "latte/status.h"

namespace latte {

// For a field of a request or of the options.
[[nodiscard]] inline Status InRange(std::string_view field, int64_t value, int64_t low,
                                    int64_t high) {
  if (value >= low && value <= high) return {};
  return InvalidArgument(
      fmt::format("{}: expected a number in [{}, {}], found {}", field, low, high, value));
}

// For a flag of a command, or a key of a file.
template <class T>
[[nodiscard]] Status FlagInRange(std::string_view flag, T value, std::type_identity_t<T> low,
                                 std::type_identity_t<T> high) {
  if (value >= low && value <= high) return {};
  return InvalidArgument(fmt::format("{}: expected {} to {}, found {}", flag, low, high, value));
}

}  // namespace latte
