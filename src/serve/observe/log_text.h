// Text of clients in log lines: nothing in it can end a line, start another field, or change what a
// terminal shows.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace latte {

// Appends `text` with every character escaped that is no visible one, and quotes and backslashes:
// \n, \", \u001b. Invalid UTF-8 becomes U+FFFD. The result is valid inside the quotes of a JSON
// string. At most `most_bytes` are appended, and "…" if that was not enough.
void AppendEscaped(std::string_view text, size_t most_bytes, std::string* out);

}  // namespace latte
