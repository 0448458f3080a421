#include "src/kernels/cpu/peak/peak.h"

#include <span>

#include "src/kernels/cpu/targets.h"

namespace latte::cpu {
namespace {

using Peak = int64_t (*)(int64_t, float*);

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
  if (isa.family != IsaFamily::kX86) return best;
  for (const Target* target : std::span(kTargets).first(static_cast<size_t>(isa.level) + 1))
    if (const Peak peak = PeakOf(*target, arithmetic)) best = peak;
  return best;
}

}  // namespace

int64_t RunPeak(const Machine& machine, Isa isa, DType arithmetic, int64_t rounds) {
  const Peak peak = machine.Has(isa) ? PeakOf(isa, arithmetic) : nullptr;
  float sink = 0;
  return peak == nullptr ? 0 : peak(rounds, &sink);
}

}  // namespace latte::cpu
