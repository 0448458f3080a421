// The launch functions of the CPU ops: each divides an op into tasks, spreads them over threads and
// passes them to a kernel as raw pointers.
#pragma once

#include <span>

#include "src/kernels/cpu/target.h"
#include "src/kernels/op.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/params/sampling.h"

namespace latte::cpu {

// The most problems of one call.
inline constexpr size_t kMaxProblems = 256;
// Every problem with its kernel. Requires: kernels[i] supports the shape of problems[i]; at most
// kMaxProblems.
void Gemm(std::span<const GemmProblem> problems, std::span<const GemmKernel* const> kernels,
          const Exec&);
void GemmT(const GemmTKernel&, const GemmTOp::Params&, const Exec&);
void MlaDecode(const MlaDecodeKernel&, const MlaDecodeOp::Params&, const Exec&);
void Mha(const MhaKernel&, const MhaOp::Params&, const Exec&);

// The other ops, for kAvx2 and kAvx512.
template <const Target& kTarget>
struct Launch {
  static void GatherPages(const GatherPagesOp::Params&, const Exec&);
  static void RmsNorm(const RmsNormOp::Params&, const Exec&);
  static void SiluMul(const SiluMulOp::Params&, const Exec&);
  static void Rope(const RopeOp::Params&, const Exec&);
  static void Add(const AddOp::Params&, const Exec&);
  static void Gather(const GatherOp::Params&, const Exec&);
  static void Cast(const CastOp::Params&, const Exec&);
  static void Append(const AppendOp::Params&, const Exec&);
  static void AddRmsNorm(const AddRmsNormOp::Params&, const Exec&);
  static void NormRopeAppend(const NormRopeAppendOp::Params&, const Exec&);
  static void LseMerge(const LseMergeOp::Params&, const Exec&);
  static void Combine(const CombineOp::Params&, const Exec&);
  static void QuantizeRows(const QuantizeRowsOp::Params&, const Exec&);
  static void LogitMax(const LogitMaxOp::Params&, const Exec&);
  static void TokenWeightSum(const TokenWeightSumOp::Params&, const Exec&);
  static void TokenWeights(const TokenWeightsOp::Params&, const Exec&);
  static void TokenHistogram(const TokenHistogramOp::Params&, const Exec&);
  static void FindBucket(const FindBucketOp::Params&, const Exec&);
};

// The shapes that all kernels of an op support; SupportsX: the shapes that kernels with arithmetic X
// support.
bool Supports(const GemmOp::Shape&);
bool SupportsS8(const GemmOp::Shape&);       // s8 products, with or without AMX
bool SupportsBf16(const GemmOp::Shape&);     // bf16 products
bool SupportsAmxBf16(const GemmOp::Shape&);  // bf16 products in AMX tiles
bool Supports(const GemmTOp::Shape&);
bool SupportsVnni(const GemmTOp::Shape&);     // integer products
bool SupportsFp8Bf16(const GemmTOp::Shape&);  // bf16 products with e4m3 weights
bool Supports(const MlaDecodeOp::Shape&);
bool Supports(const GatherPagesOp::Shape&);
bool Supports(const MhaOp::Shape&);
bool Supports(const RmsNormOp::Shape&);
bool Supports(const SiluMulOp::Shape&);
bool Supports(const RopeOp::Shape&);
bool Supports(const AddOp::Shape&);
bool Supports(const GatherOp::Shape&);
bool Supports(const CastOp::Shape&);
bool Supports(const AppendOp::Shape&);  // caches of kPlain format
bool Supports(const AddRmsNormOp::Shape&);
bool Supports(const NormRopeAppendOp::Shape&);
bool Supports(const LseMergeOp::Shape&);
bool Supports(const CombineOp::Shape&);
bool Supports(const QuantizeRowsOp::Shape&);
bool Supports(const LogitShape&);

}  // namespace latte::cpu
