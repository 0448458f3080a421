// The arithmetic peak of a processor, for measurements that quote a share of it.
#pragma once

#include <cstdint>

#include "src/kernels/machine.h"
#include "src/tensor/dtype.h"

namespace latte::cpu {

// Runs multiply-adds on the calling thread for `rounds` rounds of some nanoseconds each, with the
// instructions that kernels of `isa` use: f32 fused multiply-add (avx2, avx512), dot products of
// bf16 pairs (avx512_bf16) or of 4 bytes (avx512_vnni), or tiles (amx). An isa without instructions
// for `arithmetic` uses the best one below it. Returns the number of FLOPs; 0 if the machine has no
// such instructions.
int64_t RunPeak(const Machine& machine, Isa isa, DType arithmetic, int64_t rounds);

}  // namespace latte::cpu
