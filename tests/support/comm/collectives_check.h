// The requirements of every backend, as expectations of gtest: run by each rank of a world of any
// size.
#pragma once

#include "src/comm/communicator.h"

namespace latte::testing_support {

// Every collective with equal, unequal and zero counts; sums of every length and alignment against
// sums in the order of ranks; groups split from groups.
void CheckCollectives(Communicator& world);

}  // namespace latte::testing_support
