#include "src/kernels/cpu/peak/peak.h"

#include "src/kernels/cpu/target.h"

namespace latte::cpu {
namespace {

using Peak = int64_t (*)(int64_t, float*);

struct Entry {
  Isa isa;
  const Target* target;
};
// By rising instruction set.
constexpr Entry kTargets[] = {{Isa::kAvx2, &kAvx2},
                              {Isa::kAvx512, &kAvx512},
                              {Isa::kAvx512Vnni, &kAvx512Vnni},
                              {Isa::kAvx512Bf16, &kAvx512Bf16},
                              {Isa::kAmx, &kAmx}};

Peak PeakOf(const Target& target, DType arithmetic) {
  switch (arithmetic) {
    case DType::kF32:
      return target.f32_peak;
    case DType::kBF16:
      return target.bf16_peak;
    case DType::kI8:
      return target.s8_peak;
    default:
      return nullptr;
  }
}

// The best of the instruction sets up to `isa`.
Peak PeakOf(Isa isa, DType arithmetic) {
  Peak best = nullptr;
  for (const Entry& entry : kTargets)
    if (isa.Includes(entry.isa))
      if (const Peak peak = PeakOf(*entry.target, arithmetic)) best = peak;
  return best;
}

}  // namespace

int64_t RunPeak(const Machine& machine, Isa isa, DType arithmetic, int64_t rounds) {
  const Peak peak = machine.Has(isa) ? PeakOf(isa, arithmetic) : nullptr;
  float sink = 0;
  return peak == nullptr ? 0 : peak(rounds, &sink);
}

}  // namespace latte::cpu
