// A number of bytes as text for people.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace latte {

// "31.41 GB", "4.20 MB", "12 B"
inline std::string BytesText(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return fmt::format("{:.2f} GB", value / 1e9);
  if (bytes >= 1'000'000) return fmt::format("{:.2f} MB", value / 1e6);
  if (bytes >= 1'000) return fmt::format("{:.2f} kB", value / 1e3);
  return fmt::format("{} B", bytes);
}

}  // namespace latte
