#include "apps/terminal/answer/answer_printer.h"

#include <unistd.h>

#include "apps/flags/command.h"
#include "apps/terminal/screen.h"

namespace latte {
namespace {

ScreenStyle StyleOfOutput(bool markdown, bool in_thought) {
  const bool colours = ShowsColour(STDOUT_FILENO);
  return {.columns = ColumnsOf(STDOUT_FILENO),
          .dims = colours,
          .markdown = colours && markdown,
          .in_thought = in_thought};
}

}  // namespace

AnswerPrinter::AnswerPrinter(bool markdown) : markdown_(markdown) {
  if (IsTerminal(STDOUT_FILENO)) shown_.emplace(StyleOfOutput(markdown_, false));
}

void AnswerPrinter::BeginInThought() {
  if (shown_) shown_.emplace(StyleOfOutput(markdown_, true));
}

Status AnswerPrinter::Add(std::string_view text) {
  if (!shown_) return Write(text);
  shown_->Resize(ColumnsOf(STDOUT_FILENO));
  return Write(shown_->Add(text));
}

Status AnswerPrinter::Finish() {
  if (shown_) LATTE_RETURN_IF_ERROR(Write(shown_->Finish()));
  return amid_line_ ? Write("\n") : Status();
}

Status AnswerPrinter::Write(std::string_view text) {
  if (text.empty()) return {};
  amid_line_ = !text.ends_with('\n');
  return PrintBytes(text);
}

}  // namespace latte
