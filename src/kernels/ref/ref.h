// The reference kernels: every op as plain loops, sums in f64, rounded once. They define the
// correct result; all other kernels are tested against them.
#pragma once

#include "src/kernels/op.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/indexer.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/params/sampling.h"
#include "src/kernels/params/step_rows.h"

namespace latte::ref {

// Cached rows of the formats other than kPlain: [latent | rope] to bytes, and back to f32.
void QuantiseRow(CacheRowFormat format, const float* latent, int64_t c, const float* rope,
                 int64_t r, std::byte* row);
void DequantiseRow(CacheRowFormat format, const std::byte* row, int64_t c, int64_t r, float* to);

void Gemm(const GemmOp::Params&, const Exec&);
void ExpertGemm(const ExpertGemmOp::Params&, const Exec&);
void GemmT(const GemmTOp::Params&, const Exec&);
void QuantizeRows(const QuantizeRowsOp::Params&, const Exec&);
void RmsNorm(const RmsNormOp::Params&, const Exec&);
void LayerNorm(const LayerNormOp::Params&, const Exec&);
void RopeAngles(const RopeAnglesOp::Params&, const Exec&);
void Rope(const RopeOp::Params&, const Exec&);
void QueryTemperature(const QueryTemperatureOp::Params&, const Exec&);
void Add(const AddOp::Params&, const Exec&);
void AddRmsNorm(const AddRmsNormOp::Params&, const Exec&);
void Gather(const GatherOp::Params&, const Exec&);
void FiniteRows(const FiniteRowsOp::Params&, const Exec&);
void PackDrafts(const PackDraftsOp::Params&, const Exec&);
void CopyPage(const CopyPageOp::Params&, const Exec&);
void Cast(const CastOp::Params&, const Exec&);

void Append(const AppendOp::Params&, const Exec&);
void NormRopeAppend(const NormRopeAppendOp::Params&, const Exec&);
void GatherPages(const GatherPagesOp::Params&, const Exec&);
void MlaDecode(const MlaDecodeOp::Params&, const Exec&);
void IndexTopK(const IndexTopKOp::Params&, const Exec&);
void Mha(const MhaOp::Params&, const Exec&);
void MergeSplits(const MergeSplitsOp::Params&, const Exec&);
void LseMerge(const LseMergeOp::Params&, const Exec&);

void Route(const RouteOp::Params&, const Exec&);
void GroupByExpert(const GroupByExpertOp::Params&, const Exec&);
void Combine(const CombineOp::Params&, const Exec&);

void LogitMax(const LogitMaxOp::Params&, const Exec&);
void TokenWeightSum(const TokenWeightSumOp::Params&, const Exec&);
void TokenWeights(const TokenWeightsOp::Params&, const Exec&);
void TokenHistogram(const TokenHistogramOp::Params&, const Exec&);
void FindBucket(const FindBucketOp::Params&, const Exec&);

}  // namespace latte::ref
