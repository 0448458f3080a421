// The kernels of the ops that are neither matrix products nor attention, by rising instruction set.
#include "src/kernels/backends.h"
#include "src/kernels/cpu/tables/table.h"

namespace latte {
namespace cpu {
namespace {

constexpr Kernel<QuantizeRowsOp> kQuantizeRows[] = {
    Reference<QuantizeRowsOp>("ref.quantize_rows", ref::QuantizeRows),
    General<QuantizeRowsOp, kAvx2Target, QuantizeRows>("avx2.quantize_rows", x86::kAvx2),
    General<QuantizeRowsOp, kAvx512Target, QuantizeRows>("avx512.quantize_rows", x86::kAvx512),
};
constexpr Kernel<LogitMaxOp> kLogitMax[] = {
    Reference<LogitMaxOp>("ref.logit_max", ref::LogitMax),
    General<LogitMaxOp, kAvx2Target, LogitMax>("avx2.logit_max", x86::kAvx2),
    General<LogitMaxOp, kAvx512Target, LogitMax>("avx512.logit_max", x86::kAvx512),
};
constexpr Kernel<TokenWeightSumOp> kTokenWeightSum[] = {
    Reference<TokenWeightSumOp>("ref.token_weight_sum", ref::TokenWeightSum),
    General<TokenWeightSumOp, kAvx2Target, TokenWeightSum>("avx2.token_weight_sum", x86::kAvx2),
    General<TokenWeightSumOp, kAvx512Target, TokenWeightSum>("avx512.token_weight_sum",
                                                             x86::kAvx512),
};
constexpr Kernel<TokenWeightsOp> kTokenWeights[] = {
    Reference<TokenWeightsOp>("ref.token_weights", ref::TokenWeights),
    General<TokenWeightsOp, kAvx2Target, TokenWeights>("avx2.token_weights", x86::kAvx2),
    General<TokenWeightsOp, kAvx512Target, TokenWeights>("avx512.token_weights", x86::kAvx512),
};
constexpr Kernel<TokenHistogramOp> kTokenHistogram[] = {
    Reference<TokenHistogramOp>("ref.token_histogram", ref::TokenHistogram),
    General<TokenHistogramOp, kAvx2Target, TokenHistogram>("avx2.token_histogram", x86::kAvx2),
    General<TokenHistogramOp, kAvx512Target, TokenHistogram>("avx512.token_histogram",
                                                             x86::kAvx512),
};
constexpr Kernel<FindBucketOp> kFindBucket[] = {
    Reference<FindBucketOp>("ref.find_bucket", ref::FindBucket),
    General<FindBucketOp, kAvx2Target, FindBucket>("avx2.find_bucket", x86::kAvx2),
    General<FindBucketOp, kAvx512Target, FindBucket>("avx512.find_bucket", x86::kAvx512),
};
constexpr Kernel<RmsNormOp> kRmsNorm[] = {
    Reference<RmsNormOp>("ref.rms_norm", ref::RmsNorm),
    General<RmsNormOp, kAvx2Target, RmsNorm>("avx2.rms_norm", x86::kAvx2),
    General<RmsNormOp, kAvx512Target, RmsNorm>("avx512.rms_norm", x86::kAvx512),
};
constexpr Kernel<LayerNormOp> kLayerNorm[] = {
    Reference<LayerNormOp>("ref.layer_norm", ref::LayerNorm)};
constexpr Kernel<RopeAnglesOp> kRopeAngles[] = {
    Reference<RopeAnglesOp>("ref.rope_angles", ref::RopeAngles)};
constexpr Kernel<RopeOp> kRope[] = {
    Reference<RopeOp>("ref.rope", ref::Rope),
    General<RopeOp, kAvx2Target, Rope>("avx2.rope", x86::kAvx2),
    General<RopeOp, kAvx512Target, Rope>("avx512.rope", x86::kAvx512),
};
constexpr Kernel<QueryTemperatureOp> kQueryTemperature[] = {
    Reference<QueryTemperatureOp>("ref.query_temperature", ref::QueryTemperature)};
constexpr Kernel<AddOp> kAdd[] = {
    Reference<AddOp>("ref.add", ref::Add),
    General<AddOp, kAvx2Target, Add>("avx2.add", x86::kAvx2),
    General<AddOp, kAvx512Target, Add>("avx512.add", x86::kAvx512),
};
constexpr Kernel<AddRmsNormOp> kAddRmsNorm[] = {
    Reference<AddRmsNormOp>("ref.add_rms_norm", ref::AddRmsNorm),
    General<AddRmsNormOp, kAvx2Target, AddRmsNorm>("avx2.add_rms_norm", x86::kAvx2),
    General<AddRmsNormOp, kAvx512Target, AddRmsNorm>("avx512.add_rms_norm", x86::kAvx512),
};
constexpr Kernel<GatherOp> kGather[] = {
    Reference<GatherOp>("ref.gather", ref::Gather),
    General<GatherOp, kAvx2Target, Gather>("avx2.gather", x86::kAvx2),
    General<GatherOp, kAvx512Target, Gather>("avx512.gather", x86::kAvx512),
};
constexpr Kernel<CastOp> kCast[] = {
    Reference<CastOp>("ref.cast", ref::Cast),
    General<CastOp, kAvx2Target, Cast>("avx2.cast", x86::kAvx2),
    General<CastOp, kAvx512Target, Cast>("avx512.cast", x86::kAvx512),
};
constexpr Kernel<AppendOp> kAppend[] = {
    Reference<AppendOp>("ref.append", ref::Append),
    General<AppendOp, kAvx2Target, Append>("avx2.append", x86::kAvx2),
    General<AppendOp, kAvx512Target, Append>("avx512.append", x86::kAvx512),
};
constexpr Kernel<NormRopeAppendOp> kNormRopeAppend[] = {
    Reference<NormRopeAppendOp>("ref.norm_rope_append", ref::NormRopeAppend),
    General<NormRopeAppendOp, kAvx2Target, NormRopeAppend>("avx2.norm_rope_append", x86::kAvx2),
    General<NormRopeAppendOp, kAvx512Target, NormRopeAppend>("avx512.norm_rope_append",
                                                             x86::kAvx512),
};
constexpr Kernel<FiniteRowsOp> kFiniteRows[] = {
    Reference<FiniteRowsOp>("ref.finite_rows", ref::FiniteRows)};
constexpr Kernel<PackDraftsOp> kPackDrafts[] = {
    Reference<PackDraftsOp>("ref.pack_drafts", ref::PackDrafts)};
constexpr Kernel<CopyPageOp> kCopyPage[] = {Reference<CopyPageOp>("ref.copy_page", ref::CopyPage)};
constexpr Kernel<GatherPagesOp> kGatherPages[] = {
    Reference<GatherPagesOp>("ref.gather_pages", ref::GatherPages),
    General<GatherPagesOp, kAvx2Target, GatherPages>("avx2.gather_pages", x86::kAvx2),
    General<GatherPagesOp, kAvx512Target, GatherPages>("avx512.gather_pages", x86::kAvx512),
};
constexpr Kernel<LseMergeOp> kLseMerge[] = {
    Reference<LseMergeOp>("ref.lse_merge", ref::LseMerge),
    General<LseMergeOp, kAvx2Target, LseMerge>("avx2.lse_merge", x86::kAvx2),
    General<LseMergeOp, kAvx512Target, LseMerge>("avx512.lse_merge", x86::kAvx512),
};
constexpr Kernel<RouteOp> kRoute[] = {Reference<RouteOp>("ref.route", ref::Route)};
constexpr Kernel<GroupByExpertOp> kGroupByExpert[] = {
    Reference<GroupByExpertOp>("ref.group_by_expert", ref::GroupByExpert)};
constexpr Kernel<CombineOp> kCombine[] = {
    Reference<CombineOp>("ref.combine", ref::Combine),
    General<CombineOp, kAvx2Target, Combine>("avx2.combine", x86::kAvx2),
    General<CombineOp, kAvx512Target, Combine>("avx512.combine", x86::kAvx512),
};

}  // namespace

template <>
std::span<const Kernel<QuantizeRowsOp>> Kernels<QuantizeRowsOp>() {
  return kQuantizeRows;
}
template <>
std::span<const Kernel<LogitMaxOp>> Kernels<LogitMaxOp>() {
  return kLogitMax;
}
template <>
std::span<const Kernel<TokenWeightSumOp>> Kernels<TokenWeightSumOp>() {
  return kTokenWeightSum;
}
template <>
std::span<const Kernel<TokenWeightsOp>> Kernels<TokenWeightsOp>() {
  return kTokenWeights;
}
template <>
std::span<const Kernel<TokenHistogramOp>> Kernels<TokenHistogramOp>() {
  return kTokenHistogram;
}
template <>
std::span<const Kernel<FindBucketOp>> Kernels<FindBucketOp>() {
  return kFindBucket;
}
template <>
std::span<const Kernel<RmsNormOp>> Kernels<RmsNormOp>() {
  return kRmsNorm;
}
template <>
std::span<const Kernel<LayerNormOp>> Kernels<LayerNormOp>() {
  return kLayerNorm;
}
template <>
std::span<const Kernel<RopeAnglesOp>> Kernels<RopeAnglesOp>() {
  return kRopeAngles;
}
template <>
std::span<const Kernel<RopeOp>> Kernels<RopeOp>() {
  return kRope;
}
template <>
std::span<const Kernel<QueryTemperatureOp>> Kernels<QueryTemperatureOp>() {
  return kQueryTemperature;
}
template <>
std::span<const Kernel<AddOp>> Kernels<AddOp>() {
  return kAdd;
}
template <>
std::span<const Kernel<AddRmsNormOp>> Kernels<AddRmsNormOp>() {
  return kAddRmsNorm;
}
template <>
std::span<const Kernel<GatherOp>> Kernels<GatherOp>() {
  return kGather;
}
template <>
std::span<const Kernel<CastOp>> Kernels<CastOp>() {
  return kCast;
}
template <>
std::span<const Kernel<AppendOp>> Kernels<AppendOp>() {
  return kAppend;
}
template <>
std::span<const Kernel<NormRopeAppendOp>> Kernels<NormRopeAppendOp>() {
  return kNormRopeAppend;
}
template <>
std::span<const Kernel<FiniteRowsOp>> Kernels<FiniteRowsOp>() {
  return kFiniteRows;
}
template <>
std::span<const Kernel<PackDraftsOp>> Kernels<PackDraftsOp>() {
  return kPackDrafts;
}
template <>
std::span<const Kernel<CopyPageOp>> Kernels<CopyPageOp>() {
  return kCopyPage;
}
template <>
std::span<const Kernel<GatherPagesOp>> Kernels<GatherPagesOp>() {
  return kGatherPages;
}
template <>
std::span<const Kernel<LseMergeOp>> Kernels<LseMergeOp>() {
  return kLseMerge;
}
template <>
std::span<const Kernel<RouteOp>> Kernels<RouteOp>() {
  return kRoute;
}
template <>
std::span<const Kernel<GroupByExpertOp>> Kernels<GroupByExpertOp>() {
  return kGroupByExpert;
}
template <>
std::span<const Kernel<CombineOp>> Kernels<CombineOp>() {
  return kCombine;
}

}  // namespace cpu
}  // namespace latte
