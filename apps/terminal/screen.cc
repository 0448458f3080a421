#include "apps/terminal/screen.h"

#include <clocale>
#include <cstdlib>
#include <cwchar>
#include <string_view>

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace latte {
namespace {

std::string_view EnvironmentText(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool IsTerminal(int fd) { return isatty(fd) != 0; }

bool MovesCursor(int fd) {
  const std::string_view term = EnvironmentText("TERM");
  return IsTerminal(fd) && !term.empty() && term != "dumb";
}

bool ShowsColour(int fd) { return MovesCursor(fd) && EnvironmentText("NO_COLOR").empty(); }

int ColumnsOf(int fd) {
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

int RowAtEnd(std::wstring_view text, int columns) {
  constexpr int kUsual = 80;
  if (columns <= 0) columns = kUsual;
  int row = 0;
  int column = 0;
  for (const wchar_t c : text) {
    const int known = wcwidth(c);
    const int width = known < 0 ? 2 : known;
    if (c == L'\n' || column + width > columns) {
      ++row;
      column = 0;
    }
    if (c != L'\n') column += width;
  }
  return column < columns ? row : row + 1;
}

void UseUtf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace latte
