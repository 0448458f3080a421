// Converts text of a model for a terminal: it removes control sequences, breaks lines between
// words, and marks reasoning.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/terminal/answer/markdown_ink.h"
#include "src/chat/answer_splitter.h"

namespace latte {

struct ScreenStyle {
  int columns = 0;        // 0: lines are not wrapped
  bool dims = false;      // reasoning is dim
  bool markdown = false;  // as MarkdownInk shows it; blocks of code have the ink of code
};

// Takes the text in pieces that may end anywhere. A control character becomes its picture (ESC: ␛),
// and bytes that are not UTF-8, C1 controls and marks that change the direction of text become
// U+FFFD: nothing but newlines, tabs and this class moves the cursor or changes colours. Blocks of
// code (```) are not wrapped. UseUtf8 gives the widths of characters. Thread-compatible.
class ScreenText {
 public:
  explicit ScreenText(ScreenStyle style) : style_(style) {}

  void Resize(int columns) { style_.columns = columns; }

  // What to print now. The word that is not complete is held back. Reasoning is shown with its
  // marks.
  std::string Add(const AnswerPiece& piece);
  // The same for a text without reasoning.
  std::string Add(std::string_view text);
  // The rest.
  std::string Finish();

 private:
  void Feed(std::string_view bytes);
  void Take(char32_t c);
  void Put(InkedChar inked);
  void ChangeInk(uint8_t ink);
  void PutSpaces(int count);
  void PutNewline();
  void FlushWord();
  void Style(std::string_view sequence);

  ScreenStyle style_;
  bool in_thought_ = false;
  std::string partial_;  // bytes of a character that is not complete
  MarkdownInk markdown_;
  std::vector<InkedChar> inked_;  // of one character that is taken
  uint8_t ink_ = kNoInk;          // at the end of the word

  std::string out_;
  std::string word_;
  int word_width_ = 0;
  int spaces_ = 0;          // before the word
  int column_ = 0;          // of the cursor, before the spaces and the word
  std::string line_start_;  // the first three characters of the line but blanks
  bool in_code_ = false;
};

// Lines of Latte's own, with words whole at this width; 0: as they are.
std::string Wrapped(std::string_view text, int columns);

}  // namespace latte
