// What the program keeps for the moment when memory has run out, so that it can still say so.
#pragma once

namespace latte {

// Sets memory aside that the first failing allocation gives back, so that what is destroyed on the
// way to main has memory for it: nlohmann-json allocates while it destroys a value. Makes the
// calling thread's stack as large as a command needs: the system grows it page by page and ends the
// process by SIGSEGV where address space is short. Call once, first, on the main thread. Throws
// OutOfMemory.
void KeepReserves();

}  // namespace latte
