// The properties of this processor that kernels depend on, detected once at start-up and passed
// around.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

// Kernels of one family run on the same kind of processor. kReference is C++ for any processor that
// reads host memory; kTest is a device that only tests have.
enum class IsaFamily { kReference, kX86, kCuda, kTest };

// An instruction set that kernels are compiled for: a level of a family. Each includes the lower
// levels of its family:
//   kAvx2        AVX2, FMA, F16C (Intel Haswell, AMD Zen)
//   kAvx512      AVX-512 F, BW, DQ, VL (Intel Skylake server)
//   kAvx512Vnni  dot products of bytes (Intel Cascade Lake)
//   kAvx512Bf16  dot products of bf16, VBMI and GFNI (AMD Zen 4, Intel Sapphire Rapids)
//   kAmx         tiles of bf16 and int8 (Intel Sapphire Rapids); needs permission of the system
struct Isa {
  IsaFamily family = IsaFamily::kReference;
  int level = 0;

  static const Isa kRef, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx;

  bool operator==(const Isa&) const = default;
  // Whether it has the instructions of `other`. No family includes another.
  constexpr bool Includes(const Isa& other) const {
    return family == other.family && level >= other.level;
  }
};

inline constexpr Isa Isa::kRef{IsaFamily::kReference, 0};
inline constexpr Isa Isa::kAvx2{IsaFamily::kX86, 0};
inline constexpr Isa Isa::kAvx512{IsaFamily::kX86, 1};
inline constexpr Isa Isa::kAvx512Vnni{IsaFamily::kX86, 2};
inline constexpr Isa Isa::kAvx512Bf16{IsaFamily::kX86, 3};
inline constexpr Isa Isa::kAmx{IsaFamily::kX86, 4};

// Those that users name, in LATTE_ISA and in listings.
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

  // Whether it can run kernels of `wanted`. Processors that read host memory have the reference.
  bool Has(Isa wanted) const {
    const bool reads_host = isa.family == IsaFamily::kX86;
    return isa.Includes(wanted) || (reads_host && wanted == Isa::kRef);
  }

  // Detects this processor. LATTE_ISA=<Name(isa)> lowers the instruction set;
  // LATTE_KERNEL=name[,name…] prefers kernels by name. Errors: kInvalidArgument for an unknown or
  // unavailable LATTE_ISA or an unknown kernel; kUnsupported for a processor without AVX2, unless
  // LATTE_ISA=ref.
  [[nodiscard]] static Result<Machine> Detect();
};

}  // namespace latte
