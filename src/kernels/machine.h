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

// Micro-architectures that kernels are tuned for (bench/notebook/2026-11-gemm.md), and all others:
//   kZen4       AMD Zen 4
//   kIntelBf16  Intel server cores from Sapphire Rapids on
enum class Uarch { kOther, kZen4, kIntelBf16 };

inline constexpr std::array kAllUarchs = {Uarch::kOther, Uarch::kZen4, Uarch::kIntelBf16};

std::string_view Name(Uarch uarch);  // "zen4"

// Immutable after Detect.
struct Machine {
  Isa isa = Isa::kRef;  // the best of this processor, or less by LATTE_ISA
  Uarch uarch = Uarch::kOther;
  // Kernels that are preferred wherever they support the shape (LATTE_KERNEL).
  std::vector<std::string> forced_kernels;

  bool Has(Isa wanted) const { return wanted <= isa; }

  // Detects this processor. LATTE_ISA=<Name(isa)> lowers the instruction set;
  // LATTE_KERNEL=name[,name…] prefers kernels by name. Errors: kInvalidArgument for an unknown or
  // unavailable LATTE_ISA or an unknown kernel; kUnsupported for a processor without AVX2, unless
  // LATTE_ISA=ref.
  [[nodiscard]] static Result<Machine> Detect();
};

}  // namespace latte
