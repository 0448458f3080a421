// What happens when a mapped file is truncated by another program, or its disk fails: reading the
// lost pages raises SIGBUS, and no value can be returned from there. A program may install a
// handler that ends the process with one line naming the file. Without it, and for every other
// SIGBUS, the default action stays. Recovers nothing: the bytes are gone in the middle of a step.
//
// The table of mappings is the one global of src/: a signal handler is given an address and
// nothing else (docs/adr/0010-a-lost-map-ends-the-process.md).
#pragma once

#include <cstddef>

namespace latte {

// Installs the handler of SIGBUS. For main(): a library does not own the process's signals.
void InstallMapGuard();

// Enters [data, data + size) into the table. `message`, NUL-terminated, is what the handler writes
// before the process exits with code 1; it must live until ForgetMap.
// Returns the place in the table; -1 when it is full, and the default action stays.
// Threads: any.
int GuardMap(const std::byte* data, size_t size, const char* message);

// Frees a place; -1 is nothing. Call it before the memory is unmapped.
void ForgetMap(int place);

}  // namespace latte
