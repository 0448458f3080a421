// Pasted text in the edited line: short text can be edited there, and a mark replaces long text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace latte {

// Thread-compatible.
class Pastes {
 public:
  // What goes into the line for a pasted text: the text with kLineEnd for each line end, or a mark
  // such as "[paste 1: 10 lines, 20480 bytes]" if it is longer than kInline.
  std::string Insert(std::string_view text);

  // The line with every mark replaced by its text, and kLineEnd by a line end. A mark that was
  // changed is text of the user.
  std::string Expand(std::string_view line) const;

  // Whether the line begins with a paste of several lines.
  bool BeginsWithLines(std::string_view line) const;

  static constexpr size_t kInline = 500;  // bytes
  static constexpr std::string_view kLineEnd = "⏎";

 private:
  struct Paste {
    std::string mark;
    std::string text;
  };
  std::vector<Paste> kept_;
};

// Pasted bytes as text: line ends are "\n", and other control characters but tabs are left out.
std::string PastedText(std::string_view bytes);

}  // namespace latte
