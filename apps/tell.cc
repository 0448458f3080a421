#include "apps/tell.h"

#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/terminal/screen.h"
#include "src/base/draw/bar.h"
#include "src/text/unicode/visible.h"

namespace latte {
namespace {

// Colours come last: they are no text of a stranger.
std::string BarsFor(int fd, std::string_view text) {
  const std::string visible = VisibleLines(text);
  return ShowsColour(fd) ? WithBarColours(visible) : visible;
}

}  // namespace

void Tell(std::string_view text) { std::fputs(VisibleLines(text).c_str(), stderr); }

void TellBars(std::string_view text) { std::fputs(BarsFor(STDERR_FILENO, text).c_str(), stderr); }

void TellLine(std::string_view line) { std::fputs((VisibleLine(line) + "\n").c_str(), stderr); }

void Warn(std::string_view text) { TellLine(fmt::format("latte: warning: {}", text)); }

Status Print(std::string_view text) { return PrintBytes(VisibleLines(text)); }

Status PrintBars(std::string_view text) { return PrintBytes(BarsFor(STDOUT_FILENO, text)); }

Status PrintBytes(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
      std::fflush(stdout) != 0)
    return Fail(Code::kUnavailable, "standard output: cannot be written");
  return {};
}

}  // namespace latte
