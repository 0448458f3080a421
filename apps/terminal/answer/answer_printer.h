// Writes an answer to standard output as it comes.
#pragma once

#include <optional>
#include <string_view>

#include "latte/status.h"

#include "apps/terminal/answer/screen_text.h"

namespace latte {

// In a terminal the text is shown as ScreenText shows it; anywhere else its bytes are written. Thread-compatible.
class AnswerPrinter {
 public:
  // markdown: MarkdownInk shows it, where the terminal has colours.
  explicit AnswerPrinter(bool markdown = false);

  void BeginInThought();  // the answer begins inside reasoning; before the first Add
  // Errors: of Print.
  [[nodiscard]] Status Add(std::string_view text);
  // The rest, and the end of the last line. Errors: of Print.
  [[nodiscard]] Status Finish();

 private:
  Status Write(std::string_view text);

  bool markdown_;
  std::optional<ScreenText> shown_;  // in a terminal
  bool amid_line_ = false;
};

}  // namespace latte
