// Edits lines in a terminal: libedit, with pastes, a persistent history, and Ctrl-C and changes of
// the window's size read from descriptors.
#pragma once

#include <memory>
#include <string>

#include "latte/status.h"

#include "apps/terminal/history_file.h"
#include "apps/terminal/interrupts.h"
#include "apps/terminal/line_source.h"

namespace latte {

// Standard input must be a terminal, and standard error must move the cursor (screen.h): the line
// is shown there. Between two lines the terminal shows nothing that is typed and keeps it for the
// next line. Thread-compatible.
class LineEditor final : public LineSource {
 public:
  // Both must outlive the editor: `interrupts` catches SIGINT, `resizes` SIGWINCH and SIGCONT.
  // A history that cannot be used gives a warning. Errors: kUnavailable if the terminal cannot be
  // used.
  static Result<std::unique_ptr<LineEditor>> Open(const Interrupts& interrupts,
                                                  const Interrupts& resizes, HistoryFile history);
  ~LineEditor() override;  // restores the terminal

  [[nodiscard]] Result<LineEvent> Next(std::string_view prompt, std::string* line) override;
  void Remember(const std::string& message) override;

 private:
  class Impl;
  explicit LineEditor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace latte
