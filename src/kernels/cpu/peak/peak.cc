#include "src/kernels/cpu/peak/peak.h"

#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

using Peak = int64_t (*)(int64_t, float*);

Peak PeakOf(Isa isa, DType arithmetic) {
  switch (arithmetic) {
    case DType::kF32:
      return isa >= Isa::kAvx512 ? kAvx512.peak : isa >= Isa::kAvx2 ? kAvx2.peak : nullptr;
    case DType::kBF16:
      return isa >= Isa::kAmx ? kAmx.peak : isa >= Isa::kAvx512Bf16 ? kAvx512Bf16.peak : nullptr;
    case DType::kI8:
      return isa >= Isa::kAmx          ? kAmx.s8_peak
             : isa >= Isa::kAvx512Vnni ? kAvx512Vnni.s8_peak
                                       : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

int64_t RunPeak(const Machine& machine, Isa isa, DType arithmetic, int64_t rounds) {
  const Peak peak = machine.Has(isa) ? PeakOf(isa, arithmetic) : nullptr;
  float sink = 0;
  return peak == nullptr ? 0 : peak(rounds, &sink);
}

}  // namespace latte::cpu
