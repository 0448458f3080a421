// The kernels of the ops that are neither matrix products nor attention, by rising instruction set.
#include "src/kernels/backends.h"
#include "src/kernels/cpu/tables/table.h"

namespace latte {
namespace cpu {
namespace {

using Avx2 = Launch<kAvx2>;
using Avx512 = Launch<kAvx512>;

constexpr Kernel<QuantizeRowsOp> kQuantizeRows[] = {
    Reference<QuantizeRowsOp>("ref.quantize_rows", ref::QuantizeRows),
    General<QuantizeRowsOp>("avx2.quantize_rows", Isa::kAvx2, Avx2::QuantizeRows),
    General<QuantizeRowsOp>("avx512.quantize_rows", Isa::kAvx512, Avx512::QuantizeRows),
};
constexpr Kernel<LogitMaxOp> kLogitMax[] = {
    Reference<LogitMaxOp>("ref.logit_max", ref::LogitMax),
    General<LogitMaxOp>("avx2.logit_max", Isa::kAvx2, Avx2::LogitMax),
    General<LogitMaxOp>("avx512.logit_max", Isa::kAvx512, Avx512::LogitMax),
};
constexpr Kernel<TokenWeightSumOp> kTokenWeightSum[] = {
    Reference<TokenWeightSumOp>("ref.token_weight_sum", ref::TokenWeightSum),
    General<TokenWeightSumOp>("avx2.token_weight_sum", Isa::kAvx2, Avx2::TokenWeightSum),
    General<TokenWeightSumOp>("avx512.token_weight_sum", Isa::kAvx512, Avx512::TokenWeightSum),
};
constexpr Kernel<TokenWeightsOp> kTokenWeights[] = {
    Reference<TokenWeightsOp>("ref.token_weights", ref::TokenWeights),
    General<TokenWeightsOp>("avx2.token_weights", Isa::kAvx2, Avx2::TokenWeights),
    General<TokenWeightsOp>("avx512.token_weights", Isa::kAvx512, Avx512::TokenWeights),
};
constexpr Kernel<TokenHistogramOp> kTokenHistogram[] = {
    Reference<TokenHistogramOp>("ref.token_histogram", ref::TokenHistogram),
    General<TokenHistogramOp>("avx2.token_histogram", Isa::kAvx2, Avx2::TokenHistogram),
    General<TokenHistogramOp>("avx512.token_histogram", Isa::kAvx512, Avx512::TokenHistogram),
};
constexpr Kernel<FindBucketOp> kFindBucket[] = {
    Reference<FindBucketOp>("ref.find_bucket", ref::FindBucket),
    General<FindBucketOp>("avx2.find_bucket", Isa::kAvx2, Avx2::FindBucket),
    General<FindBucketOp>("avx512.find_bucket", Isa::kAvx512, Avx512::FindBucket),
};
constexpr Kernel<RmsNormOp> kRmsNorm[] = {
    Reference<RmsNormOp>("ref.rms_norm", ref::RmsNorm),
    General<RmsNormOp>("avx2.rms_norm", Isa::kAvx2, Avx2::RmsNorm),
    General<RmsNormOp>("avx512.rms_norm", Isa::kAvx512, Avx512::RmsNorm),
};
constexpr Kernel<RopeAnglesOp> kRopeAngles[] = {
    Reference<RopeAnglesOp>("ref.rope_angles", ref::RopeAngles)};
constexpr Kernel<RopeOp> kRope[] = {
    Reference<RopeOp>("ref.rope", ref::Rope),
    General<RopeOp>("avx2.rope", Isa::kAvx2, Avx2::Rope),
    General<RopeOp>("avx512.rope", Isa::kAvx512, Avx512::Rope),
};
constexpr Kernel<SiluMulOp> kSiluMul[] = {
    Reference<SiluMulOp>("ref.silu_mul", ref::SiluMul),
    General<SiluMulOp>("avx2.silu_mul", Isa::kAvx2, Avx2::SiluMul),
    General<SiluMulOp>("avx512.silu_mul", Isa::kAvx512, Avx512::SiluMul),
};
constexpr Kernel<AddOp> kAdd[] = {
    Reference<AddOp>("ref.add", ref::Add),
    General<AddOp>("avx2.add", Isa::kAvx2, Avx2::Add),
    General<AddOp>("avx512.add", Isa::kAvx512, Avx512::Add),
};
constexpr Kernel<AddRmsNormOp> kAddRmsNorm[] = {
    Reference<AddRmsNormOp>("ref.add_rms_norm", ref::AddRmsNorm),
    General<AddRmsNormOp>("avx2.add_rms_norm", Isa::kAvx2, Avx2::AddRmsNorm),
    General<AddRmsNormOp>("avx512.add_rms_norm", Isa::kAvx512, Avx512::AddRmsNorm),
};
constexpr Kernel<GatherOp> kGather[] = {
    Reference<GatherOp>("ref.gather", ref::Gather),
    General<GatherOp>("avx2.gather", Isa::kAvx2, Avx2::Gather),
    General<GatherOp>("avx512.gather", Isa::kAvx512, Avx512::Gather),
};
constexpr Kernel<CastOp> kCast[] = {
    Reference<CastOp>("ref.cast", ref::Cast),
    General<CastOp>("avx2.cast", Isa::kAvx2, Avx2::Cast),
    General<CastOp>("avx512.cast", Isa::kAvx512, Avx512::Cast),
};
constexpr Kernel<AppendOp> kAppend[] = {
    Reference<AppendOp>("ref.append", ref::Append),
    General<AppendOp>("avx2.append", Isa::kAvx2, Avx2::Append),
    General<AppendOp>("avx512.append", Isa::kAvx512, Avx512::Append),
};
constexpr Kernel<NormRopeAppendOp> kNormRopeAppend[] = {
    Reference<NormRopeAppendOp>("ref.norm_rope_append", ref::NormRopeAppend),
    General<NormRopeAppendOp>("avx2.norm_rope_append", Isa::kAvx2, Avx2::NormRopeAppend),
    General<NormRopeAppendOp>("avx512.norm_rope_append", Isa::kAvx512, Avx512::NormRopeAppend),
};
constexpr Kernel<GatherPagesOp> kGatherPages[] = {
    Reference<GatherPagesOp>("ref.gather_pages", ref::GatherPages),
    General<GatherPagesOp>("avx2.gather_pages", Isa::kAvx2, Avx2::GatherPages),
    General<GatherPagesOp>("avx512.gather_pages", Isa::kAvx512, Avx512::GatherPages),
};
constexpr Kernel<LseMergeOp> kLseMerge[] = {
    Reference<LseMergeOp>("ref.lse_merge", ref::LseMerge),
    General<LseMergeOp>("avx2.lse_merge", Isa::kAvx2, Avx2::LseMerge),
    General<LseMergeOp>("avx512.lse_merge", Isa::kAvx512, Avx512::LseMerge),
};
constexpr Kernel<RouteOp> kRoute[] = {Reference<RouteOp>("ref.route", ref::Route)};
constexpr Kernel<GroupByExpertOp> kGroupByExpert[] = {
    Reference<GroupByExpertOp>("ref.group_by_expert", ref::GroupByExpert)};
constexpr Kernel<CombineOp> kCombine[] = {
    Reference<CombineOp>("ref.combine", ref::Combine),
    General<CombineOp>("avx2.combine", Isa::kAvx2, Avx2::Combine),
    General<CombineOp>("avx512.combine", Isa::kAvx512, Avx512::Combine),
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
std::span<const Kernel<RopeAnglesOp>> Kernels<RopeAnglesOp>() {
  return kRopeAngles;
}
template <>
std::span<const Kernel<RopeOp>> Kernels<RopeOp>() {
  return kRope;
}
template <>
std::span<const Kernel<SiluMulOp>> Kernels<SiluMulOp>() {
  return kSiluMul;
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
