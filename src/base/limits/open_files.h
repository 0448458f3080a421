// The number of files and connections that this process may have open.
#pragma once

#include <cstdint>

namespace latte {

// Raises the limit to what the process may have without privileges (the hard limit), and returns
// it.
int64_t RaiseOpenFiles();

}  // namespace latte
