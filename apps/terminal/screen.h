// The abilities of the terminal on a file descriptor.
#pragma once

#include <string_view>

namespace latte {

bool IsTerminal(int fd);

// Whether it understands cursor movement: a terminal, and TERM is set and not "dumb".
bool MovesCursor(int fd);

// Whether to colour: MovesCursor, and NO_COLOR is unset or empty (no-color.org).
bool ShowsColour(int fd);

// Its width; 0 if `fd` is no terminal or has no width.
int ColumnsOf(int fd);

// The row, counted from 0, in which the cursor is after `text` that a terminal of this width has
// broken. A control character has two columns (^A). 0 columns: 80. UseUtf8 gives the widths of
// characters.
int RowAtEnd(std::wstring_view text, int columns);

// Makes the C library's functions for characters read UTF-8: the user's locale, or C.UTF-8 where
// that is none. Not thread-safe: call it before threads start.
void UseUtf8();

}  // namespace latte
