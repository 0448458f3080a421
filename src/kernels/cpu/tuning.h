// The tunings of the CPU kernels, one per micro-architecture.
#pragma once

#include <array>

#include "src/kernels/cpu/target.h"
#include "src/kernels/machine.h"

namespace latte::cpu {

// By Uarch. Measured: bench/notebook/2026-11-gemm.md. Processors without measurements get kOther.
inline constexpr std::array<Tuning, kAllUarchs.size()> kTunings = {{
    /*kOther*/ {},
    /*kZen4*/ {.prefetch_level = CacheLevel::kL2},
    /*kIntelBf16*/ {.prefetch_level = CacheLevel::kL2, .many_dram_streams = true},
}};

inline const Tuning& TuningOf(const Machine& machine) {
  return kTunings[static_cast<size_t>(machine.uarch)];
}

}  // namespace latte::cpu
