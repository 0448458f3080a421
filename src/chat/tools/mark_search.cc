#include "src/chat/tools/mark_search.h"

#include <algorithm>
#include <vector>

#include "src/base/strings.h"

namespace latte {

FoundMark FindMark(std::span<const ToolMark> marks, std::string_view text) {
  FoundMark found;
  found.certain = text.size();
  for (const ToolMark& mark : marks) {
    const size_t at = text.find(mark.text);
    const bool longer = at == found.at && mark.text.size() > found.mark.text.size();
    if (at != std::string_view::npos && (at < found.at || longer)) {
      found.at = at;
      found.mark = mark;
    }
    found.certain = std::min(found.certain, text.size() - BeginningOf(mark.text, text));
  }
  return found;
}

FoundMark FindMark(std::span<const std::string_view> marks, std::string_view text) {
  std::vector<ToolMark> list;
  for (const std::string_view mark : marks) list.push_back({mark});
  return FindMark(list, text);
}

FoundMark FindMark(std::string_view mark, std::string_view text) {
  const ToolMark only{mark};
  return FindMark(std::span(&only, 1), text);
}

}  // namespace latte
