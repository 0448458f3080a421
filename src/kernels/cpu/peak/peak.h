// The arithmetic peak of a processor, for measurements that quote a share of it.
#pragma once

#include <cstdint>

#include "src/kernels/machine.h"
#include "src/tensor/dtype.h"

namespace latte::cpu {

// Multiplies and adds on the calling thread for `rounds` rounds, some nanoseconds each, with the
// instructions that kernels of `isa` use: kF32 by fused multiply-add (avx2, avx512), kBF16 and kI8
// by dot products of pairs and of four bytes (avx512_bf16, avx512_vnni) or tiles (amx). An isa
// without instructions of its own for `arithmetic` means the best one below it. Returns the FLOPs
// done; 0 where the machine has no such instructions.
int64_t RunPeak(const Machine& machine, Isa isa, DType arithmetic, int64_t rounds);

}  // namespace latte::cpu
