// What the processor can do, asked once at start-up and then passed around.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

// Instruction sets that kernels are compiled for, slowest first.
enum class Isa { kRef, kAvx2, kAvx512, kAvx512Bf16 };

std::string_view Name(Isa isa);  // "avx512"

// Immutable after Detect.
struct Machine {
  Isa isa = Isa::kRef;  // the best that this processor has and LATTE_ISA allows
  std::vector<std::string>
      forced_kernels;  // rows that are preferred wherever they support the shape

  bool Has(Isa wanted) const { return wanted <= isa; }

  // Asks the processor. Environment: LATTE_ISA=ref|avx2|avx512|avx512_bf16 lowers the
  // choice; LATTE_KERNEL=name[,name…] prefers rows by name. Errors: kInvalidArgument for an unknown
  // or unavailable LATTE_ISA or an unknown row in LATTE_KERNEL.
  [[nodiscard]] static Result<Machine> Detect();
};

}  // namespace latte
