// Handles a mapped file that another program truncates, or whose disk fails: reading the lost pages
// raises SIGBUS, and no function can return an error from there. A program may install a handler
// that prints one line naming the file and ends the process. Without the handler, and for every
// other SIGBUS, the default action stays. Nothing is recovered: the bytes are lost during a step.
//
// The table of mappings is the only global variable of src/: a signal handler gets an address and
// nothing else (docs/adr/0010-a-lost-map-ends-the-process.md).
#pragma once

#include <cstddef>

namespace latte {

// Installs the handler of SIGBUS. For main(): a library does not own the process's signals.
void InstallMapGuard();

// Adds [data, data + size) to the table. The handler writes `message`, NUL-terminated, before the
// process exits with code 1; it must live until ForgetMap. Returns the place in the table; −1 if it
// is full, and then the default action stays. Threads: any.
int GuardMap(const std::byte* data, size_t size, const char* message);

// Frees a place; −1 does nothing. Call it before the memory is unmapped.
void ForgetMap(int place);

}  // namespace latte
