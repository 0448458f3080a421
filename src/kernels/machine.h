// The properties of a CPU or a GPU on which kernels depend, detected once at start-up and passed as
// arguments.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/kernels/isa.h"

namespace latte {

namespace cuda {
class KernelSet;
}

// Those that users name, in LATTE_ISA and in listings: the reference, then x86 by rising level.
std::span<const Isa> AllIsas();

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
  const cuda::KernelSet* gpu = nullptr;  // the kernels of a GPU, if the machine is one

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

  // A GPU with its kernels, which must outlive the machine. LATTE_KERNEL as above. Errors:
  // kInvalidArgument for an unknown kernel; kUnsupported for a GPU that is too old.
  [[nodiscard]] static Result<Machine> OfGpu(const cuda::KernelSet& kernels);
};

}  // namespace latte
