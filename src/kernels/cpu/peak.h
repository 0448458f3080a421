// The arithmetic peak of a processor, for measurements that quote a share of it.
#pragma once

#include <cstdint>

#include "src/kernels/machine.h"
#include "src/tensor/dtype.h"

namespace latte::cpu {

// Multiplies and adds on the calling thread for `rounds` rounds, some nanoseconds each: f32 by
// fused multiply-add, bf16 by dot products of pairs. Returns the FLOPs done; 0 where the machine
// has no instructions for it.
int64_t RunPeak(const Machine& machine, DType arithmetic, int64_t rounds);

}  // namespace latte::cpu
