// From Params to tasks: cuts an op into pieces of work, spreads them over threads and hands them to
// a target as raw pointers.
#pragma once

#include "src/kernels/cpu/target.h"
#include "src/kernels/op.h"
#include "src/kernels/params/linear.h"
#include "src/kernels/params/mla.h"

namespace latte::cpu {

// What rows of a target run. Defined for kAvx2 and kAvx512; of kAvx512Bf16 only
// MlaDecode, for bf16 caches.
template <const Target& kTarget>
struct Launch {
  static void Linear(const LinearOp::Params&, const Exec&);
  static void LinearT(const LinearTOp::Params&, const Exec&);
  static void MlaDecode(const MlaDecodeOp::Params&, const Exec&);
  static void GatherPages(const GatherPagesOp::Params&, const Exec&);
  static void Mha(const MhaOp::Params&, const Exec&);
  static void RmsNorm(const RmsNormOp::Params&, const Exec&);
  static void SiluMul(const SiluMulOp::Params&, const Exec&);
};

// What every target supports.
bool Supports(const LinearOp::Shape&);
bool Supports(const LinearTOp::Shape&);
bool Supports(const MlaDecodeOp::Shape&);
bool Supports(const GatherPagesOp::Shape&);
bool Supports(const MhaOp::Shape&);
bool Supports(const RmsNormOp::Shape&);
bool Supports(const SiluMulOp::Shape&);

}  // namespace latte::cpu
