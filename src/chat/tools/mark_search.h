// Searches for marks of a chat format in a text that is not complete yet.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "src/chat/tools/tool_syntax.h"

namespace latte {

// A mark in a text.
struct FoundMark {
  size_t at = std::string_view::npos;
  ToolMark mark;
  size_t certain = 0;  // bytes before which no mark can begin, whatever follows the text
  explicit operator bool() const { return at != std::string_view::npos; }
};

// The mark that begins first; of several, the longest.
FoundMark FindMark(std::span<const ToolMark> marks, std::string_view text);
FoundMark FindMark(std::span<const std::string_view> marks, std::string_view text);
FoundMark FindMark(std::string_view mark, std::string_view text);

}  // namespace latte
