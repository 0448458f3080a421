#include "apps/tell.h"

#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "src/text/unicode/visible.h"

namespace latte {

void Tell(std::string_view text) { std::fputs(VisibleLines(text).c_str(), stderr); }

void TellLine(std::string_view line) { std::fputs((VisibleLine(line) + "\n").c_str(), stderr); }

void Warn(std::string_view text) { TellLine(fmt::format("latte: warning: {}", text)); }

Status Print(std::string_view text) { return PrintBytes(VisibleLines(text)); }

Status PrintBytes(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
      std::fflush(stdout) != 0)
    return Fail(Code::kUnavailable, "standard output: cannot be written");
  return {};
}

}  // namespace latte
