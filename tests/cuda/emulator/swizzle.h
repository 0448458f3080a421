// The 128-byte swizzle of TMA and wgmma: the 16-byte chunk within a 128-byte line is XORed with the
// number of the line in its group of eight, both taken from the address itself.
#pragma once

#include "src/kernels/cuda/words/types.h"

namespace latte::emulator {

inline cuda::SharedAddr Swizzled(cuda::SharedAddr a) { return a ^ (a >> 7 & 7) << 4; }

}  // namespace latte::emulator
