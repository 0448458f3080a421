// Instruction sets of GPUs: the level is the compute capability, 90 for 9.0.
#pragma once

#include "src/kernels/isa.h"

namespace latte::cuda {

inline constexpr Isa kAnyGpu{IsaFamily::kCuda, 80};  // the oldest that kernels are compiled for
inline constexpr Isa kSm90a{IsaFamily::kCuda, 90, true};

}  // namespace latte::cuda
