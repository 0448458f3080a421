// The messages of Latte to its user. They contain names, messages and values from checkpoints,
// servers and files; only this file makes them safe for a terminal. Answers of models go through
// AnswerPrinter.
#pragma once

#include <string_view>

#include "latte/status.h"

namespace latte {

// Writes `text` to standard error, as VisibleLines.
void Tell(std::string_view text);

// The same, with its bars (src/base/draw/bar.h) in colours where standard error shows them.
void TellBars(std::string_view text);

// Writes `line`, as VisibleLine, and a newline to standard error: text of strangers adds no line.
void TellLine(std::string_view line);

// "latte: warning: …".
void Warn(std::string_view text);

// Writes `text`, a table or JSON, to standard output, as VisibleLines. Errors: kUnavailable.
[[nodiscard]] Status Print(std::string_view text);

// The same, with its bars in colours where standard output shows them.
[[nodiscard]] Status PrintBars(std::string_view text);

// Writes bytes to standard output as they are. Errors: kUnavailable.
[[nodiscard]] Status PrintBytes(std::string_view bytes);

}  // namespace latte
