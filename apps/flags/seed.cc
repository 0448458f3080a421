#include "apps/flags/seed.h"

#include <random>

namespace latte {

uint64_t DrawSeed() { return std::random_device()(); }

}  // namespace latte
