// Random seeds, if the user gives none.
#pragma once

#include <cstdint>

namespace latte {

// A random seed, of at most 32 bits: short enough to be typed again.
uint64_t DrawSeed();

}  // namespace latte
