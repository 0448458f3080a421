// Writes an answer to standard output as it arrives.
#pragma once

#include <optional>
#include <string_view>

#include "latte/status.h"

#include "apps/terminal/answer/screen_text.h"

namespace latte {

// In a terminal the text is shown as ScreenText shows it; anywhere else its bytes are written.
// Thread-compatible.
class AnswerPrinter {
 public:
  // markdown: MarkdownInk shows it, where the terminal has colours.
  explicit AnswerPrinter(bool markdown = false);

  // Errors: of Print.
  [[nodiscard]] Status Add(const AnswerPiece& piece);
  // The same for the text of an answer. Only one of the two may be used.
  [[nodiscard]] Status Add(std::string_view text) { return Add(splitter_.Push(text)); }
  // The rest, and the end of the last line. Errors: of Print.
  [[nodiscard]] Status Finish();

 private:
  Status Write(std::string_view text);

  AnswerSplitter splitter_{/*in_thought=*/false};  // of texts
  std::optional<ScreenText> shown_;                // in a terminal
  bool amid_line_ = false;
};

}  // namespace latte
