// The properties of this processor that kernels depend on, detected once at start-up and passed
// around.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

// Instruction sets that kernels are compiled for, in rising order; each includes all before it:
//   kAvx2        AVX2, FMA, F16C (Intel Haswell, AMD Zen)
//   kAvx512      AVX-512 F, BW, DQ, VL (Intel Skylake server)
//   kAvx512Vnni  dot products of bytes (Intel Cascade Lake)
//   kAvx512Bf16  dot products of bf16, VBMI and GFNI (AMD Zen 4, Intel Sapphire Rapids)
//   kAmx         tiles of bf16 and int8 (Intel Sapphire Rapids); needs permission of the system
enum class Isa { kRef, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

inline constexpr std::array kAllIsas = {Isa::kRef,        Isa::kAvx2,       Isa::kAvx512,
                                        Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAmx};

std::string_view Name(Isa isa);  // "avx512"

// Immutable after Detect.
struct Machine {
  Isa isa = Isa::kRef;  // the best of this processor, or less by LATTE_ISA
  // Kernels that are preferred wherever they support the shape (LATTE_KERNEL).
  std::vector<std::string> forced_kernels;

  // Properties in which processors of one instruction set differ (bench/notebook/2026-11-gemm.md).
  // Whether sequential prefetch should go into the L2 instead of the L1: AMD Zen 4, and Intel
  // server cores from Sapphire Rapids on.
  bool prefetches_into_l2 = false;
  // Whether AVX-512 dot products of bf16 are slower than f32 multiply-adds: Intel cores. AMD cores
  // run them at twice the rate of f32.
  bool slow_bf16_dot = false;
  // Whether a core reads memory faster through many streams than through one: Intel cores.
  bool many_dram_streams = false;

  bool Has(Isa wanted) const { return wanted <= isa; }

  // Detects this processor. LATTE_ISA=<Name(isa)> lowers the instruction set;
  // LATTE_KERNEL=name[,name…] prefers kernels by name. Errors: kInvalidArgument for an unknown or
  // unavailable LATTE_ISA or an unknown kernel; kUnsupported for a processor without AVX2, unless
  // LATTE_ISA=ref.
  [[nodiscard]] static Result<Machine> Detect();
};

}  // namespace latte
