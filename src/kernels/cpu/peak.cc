#include "src/kernels/cpu/peak.h"

#include "src/kernels/cpu/target.h"

namespace latte::cpu {

int64_t RunPeak(const Machine& machine, DType arithmetic, int64_t rounds) {
  float sink = 0;
  if (arithmetic == DType::kBF16)
    return machine.Has(Isa::kAvx512Bf16) ? kAvx512Bf16.peak(rounds, &sink) : 0;
  if (machine.Has(Isa::kAvx512)) return kAvx512.peak(rounds, &sink);
  return machine.Has(Isa::kAvx2) ? kAvx2.peak(rounds, &sink) : 0;
}

}  // namespace latte::cpu
