// The one message for a number outside its range.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "latte/status.h"

namespace latte {

[[nodiscard]] inline Status InRange(std::string_view field, int64_t value, int64_t low,
                                    int64_t high) {
  if (value >= low && value <= high) return {};
  return InvalidArgument(
      fmt::format("{}: expected a number in [{}, {}], found {}", field, low, high, value));
}

}  // namespace latte
