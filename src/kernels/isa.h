// Instruction sets for which kernels are compiled. cpu/targets.h lists the x86 ones.
//
// Files that are compiled with an instruction set include this header; cpu/target.h lists the
// resulting restrictions.
#pragma once

namespace latte {

// Kernels of one family run on the same kind of processor. kReference is C++ for any processor that
// reads host memory; kTest is a device that only tests have.
enum class IsaFamily { kReference, kX86, kCuda, kTest };

// A level of a family, which includes the lower levels.
struct Isa {
  IsaFamily family = IsaFamily::kReference;
  int level = 0;
  // Whether no other level has its instructions: only GPUs of level 90 have sm_90a.
  bool exact = false;

  static const Isa kRef;

  bool operator==(const Isa&) const = default;
  // Whether a processor of this level has the instructions of `other`. No family includes another.
  constexpr bool Includes(const Isa& other) const {
    return family == other.family && (other.exact ? level == other.level : level >= other.level);
  }
};

inline constexpr Isa Isa::kRef{};

}  // namespace latte
