#include "apps/terminal/answer_printer.h"

#include <unistd.h>

#include "apps/flags/command.h"
#include "apps/terminal/screen.h"

namespace latte {
namespace {

ScreenStyle StyleOfOutput(bool in_thought) {
  return {.columns = ColumnsOf(STDOUT_FILENO),
          .dims = ShowsColour(STDOUT_FILENO),
          .in_thought = in_thought};
}

}  // namespace

AnswerPrinter::AnswerPrinter() {
  if (IsTerminal(STDOUT_FILENO)) shown_.emplace(StyleOfOutput(false));
}

void AnswerPrinter::BeginInThought() {
  if (shown_) shown_.emplace(StyleOfOutput(true));
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
