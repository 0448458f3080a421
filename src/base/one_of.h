// Lists of accepted words in messages.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace latte {

// "a", "a or b", "a, b or c".
inline std::string OneOf(std::span<const std::string_view> words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 < words.size() ? ", " : " or ";
    out += words[i];
  }
  return out;
}

}  // namespace latte
