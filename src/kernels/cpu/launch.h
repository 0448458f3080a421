// The launch functions of the CPU ops: each divides an op into tasks, spreads them over threads and
// passes them to a kernel as raw pointers.
#pragma once

#include <span>

#include "src/kernels/cpu/target.h"
#include "src/kernels/op.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/indexer.h"
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
void IndexTopK(const IndexTopKKernel&, const IndexTopKOp::Params&, const Exec&);
void MergeSplits(const MlaDecodeKernel&, const MergeSplitsOp::Params&, const Exec&);
void Mha(const MhaKernel&, const MhaOp::Params&, const Exec&);

// The other ops.
void GatherPages(const Target&, const GatherPagesOp::Params&, const Exec&);
void RmsNorm(const Target&, const RmsNormOp::Params&, const Exec&);
void Rope(const Target&, const RopeOp::Params&, const Exec&);
void Add(const Target&, const AddOp::Params&, const Exec&);
void Gather(const Target&, const GatherOp::Params&, const Exec&);
void Cast(const Target&, const CastOp::Params&, const Exec&);
void Append(const Target&, const AppendOp::Params&, const Exec&);
void AddRmsNorm(const Target&, const AddRmsNormOp::Params&, const Exec&);
void NormRopeAppend(const Target&, const NormRopeAppendOp::Params&, const Exec&);
void LseMerge(const Target&, const LseMergeOp::Params&, const Exec&);
void Combine(const Target&, const CombineOp::Params&, const Exec&);
void QuantizeRows(const Target&, const QuantizeRowsOp::Params&, const Exec&);
void LogitMax(const Target&, const LogitMaxOp::Params&, const Exec&);
void TokenWeightSum(const Target&, const TokenWeightSumOp::Params&, const Exec&);
void TokenWeights(const Target&, const TokenWeightsOp::Params&, const Exec&);
void TokenHistogram(const Target&, const TokenHistogramOp::Params&, const Exec&);
void FindBucket(const Target&, const FindBucketOp::Params&, const Exec&);

// The shapes that all kernels of an op support.
bool Supports(const GemmOp::Shape&);
bool Supports(const GemmTOp::Shape&);
bool Supports(const MlaDecodeOp::Shape&);
bool Supports(const IndexTopKOp::Shape&);
bool Supports(const GatherPagesOp::Shape&);
bool Supports(const MhaOp::Shape&);
bool Supports(const RmsNormOp::Shape&);
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
