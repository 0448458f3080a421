#include "apps/terminal/answer/answer_printer.h"

#include <unistd.h>

#include "apps/flags/command.h"
#include "apps/terminal/screen.h"

namespace latte {
namespace {

ScreenStyle StyleOfOutput(bool markdown) {
  const bool colours = ShowsColour(STDOUT_FILENO);
  return {.columns = ColumnsOf(STDOUT_FILENO), .dims = colours, .markdown = colours && markdown};
}

}  // namespace

AnswerPrinter::AnswerPrinter(bool markdown) {
  if (IsTerminal(STDOUT_FILENO)) shown_.emplace(StyleOfOutput(markdown));
}

Status AnswerPrinter::Add(const AnswerPiece& piece) {
  if (!shown_) return Write(piece.Thought() + piece.Content());
  shown_->Resize(ColumnsOf(STDOUT_FILENO));
  return Write(shown_->Add(piece));
}

Status AnswerPrinter::Finish() {
  LATTE_RETURN_IF_ERROR(Add(splitter_.Finish()));
  if (shown_) LATTE_RETURN_IF_ERROR(Write(shown_->Finish()));
  return amid_line_ ? Write("\n") : Status();
}

Status AnswerPrinter::Write(std::string_view text) {
  if (text.empty()) return {};
  amid_line_ = !text.ends_with('\n');
  return PrintBytes(text);
}

}  // namespace latte
