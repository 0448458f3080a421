// From Params to tasks: cuts an op into pieces of work, spreads them over threads and hands them to
// a target as raw pointers.
#pragma once

#include "src/kernels/cpu/target.h"
#include "src/kernels/op.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/params/sampling.h"

namespace latte::cpu {

// What rows of a target run. Defined for kAvx2 and kAvx512; of kAvx2Bytes only Linear, for int8
// activations; of kAvx512Vnni that, LinearT, for int8 and 4-bit weights, and MlaDecode, for int8
// caches; of kAvx512Bf16 only Linear, for bf16 activations, LinearT, for weights of e4m3,
// MlaDecode, for bf16 and the other quantised caches, and Mha, for bf16 arithmetic; of kAvx512SmallH
// MlaDecode, for caches of e4m3; of kAmx Linear, for bf16 activations and weights of bf16 or 8
// bits, MlaDecode, for caches but those of int8, and Mha, for bf16 arithmetic; of kAmxInt8 Linear,
// for int8 activations, and MlaDecode, for int8 caches.
template <const Target& kTarget>
struct Launch {
  static void Gemm(const GemmOp::Params&, const Exec&);
  static void GemmT(const GemmTOp::Params&, const Exec&);
  static void MlaDecode(const MlaDecodeOp::Params&, const Exec&);
  static void GatherPages(const GatherPagesOp::Params&, const Exec&);
  static void Mha(const MhaOp::Params&, const Exec&);
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

// What every target supports.
bool Supports(const GemmOp::Shape&);
bool SupportsS8(const GemmOp::Shape&);       // of the rows that multiply bytes
bool SupportsAmxS8(const GemmOp::Shape&);    // likewise on tiles
bool SupportsBf16(const GemmOp::Shape&);     // of the rows that multiply bf16
bool SupportsAmxBf16(const GemmOp::Shape&);  // of bf16 activations on tiles
bool Supports(const GemmTOp::Shape&);
bool SupportsVnni(const GemmTOp::Shape&);     // of the row that multiplies integers
bool SupportsFp8Bf16(const GemmTOp::Shape&);  // of the row that multiplies pairs of bf16
bool Supports(const MlaDecodeOp::Shape&);
bool Supports(const GatherPagesOp::Shape&);
bool Supports(const MhaOp::Shape&);
bool Supports(const RmsNormOp::Shape&);
bool Supports(const SiluMulOp::Shape&);
bool Supports(const RopeOp::Shape&);
bool Supports(const AddOp::Shape&);
bool Supports(const GatherOp::Shape&);
bool Supports(const CastOp::Shape&);
bool Supports(const AppendOp::Shape&);  // caches of plain numbers
bool Supports(const AddRmsNormOp::Shape&);
bool Supports(const NormRopeAppendOp::Shape&);
bool Supports(const LseMergeOp::Shape&);
bool Supports(const CombineOp::Shape&);
bool Supports(const QuantizeRowsOp::Shape&);
bool Supports(const LogitShape&);

}  // namespace latte::cpu
