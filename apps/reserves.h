// Memory that the program reserves to report that memory has run out.
#pragma once

namespace latte {

// Reserves memory that the first failing allocation releases, because destructors on the way to
// main need some: nlohmann-json allocates while it destroys a value. Also grows the stack of the
// calling thread to the size that a command needs: the system grows it page by page and ends the
// process by SIGSEGV if address space is short. Call it once, first, on the main thread. Throws
// OutOfMemory.
void KeepReserves();

}  // namespace latte
