// What the processor can do, asked once at start-up and then passed around.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

// Instruction sets that kernels are compiled for, slowest first.
// Each has all of the ones before it:
//   kAvx2        AVX2, FMA, F16C (Haswell)
//   kAvx512      F, BW, DQ, VL (Skylake server)
//   kAvx512Vnni  dot products of bytes (Cascade Lake)
//   kAvx512Bf16  dot products of bf16, byte permutations VBMI and GFNI (Zen 4, Sapphire Rapids)
//   kAmx         tiles of bf16 and int8 (Sapphire Rapids); asks the operating system for them
enum class Isa { kRef, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

inline constexpr std::array kAllIsas = {Isa::kRef,        Isa::kAvx2,       Isa::kAvx512,
                                        Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAmx};

std::string_view Name(Isa isa);  // "avx512"

// Immutable after Detect.
struct Machine {
  Isa isa = Isa::kRef;  // the best that this processor has and LATTE_ISA allows
  std::vector<std::string>
      forced_kernels;  // rows that are preferred wherever they support the shape

  // What processors of one instruction set differ in, as measured (docs/kernels/linear.md).
  // Whether lines of memory that kernels ask for in its own order should go into the L2 and not the
  // L1: on Zen 4, where it takes 0.62 to 0.9 of the time with 3 to 32 rows of x, and on Intel's
  // server cores from Sapphire Rapids on. Zen 5 is faster with the L1.
  bool prefetches_into_l2 = false;
  // Whether AVX-512 dot products of bf16 are slower than multiply-adds of f32: half their rate on
  // Intel's cores, twice their rate on AMD's.
  bool slow_bf16_dot = false;
  // Whether memory answers many streams of one core faster than one: 1.2 to 1.7 times on Intel's
  // cores; Zen 5 answers one a third faster than eight.
  bool many_dram_streams = false;

  bool Has(Isa wanted) const { return wanted <= isa; }

  // Asks the processor. LATTE_ISA=<Name(isa)> lowers the choice; LATTE_KERNEL=name[,name…] prefers
  // rows by name. Errors: kInvalidArgument for an unknown or unavailable LATTE_ISA or an unknown
  // row; kUnsupported for a processor with the reference alone, unless LATTE_ISA=ref asks for it.
  [[nodiscard]] static Result<Machine> Detect();
};

}  // namespace latte
