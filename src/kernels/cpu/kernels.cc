// The table of CPU kernels: for each op the reference first, then by rising instruction set. Kernels
// are compiled once per instruction set (cpu/targets/<isa>.cc). Select (registry.h) takes the last
// kernel of an op that the machine can run and that supports the shape.
#include "src/kernels/cpu/launch.h"
#include "src/kernels/ref/ref.h"
#include "src/kernels/registry.h"

namespace latte {
namespace {

template <class Op>
bool Always(const typename Op::Shape&) {
  return true;
}

template <class Op>
constexpr Kernel<Op> RefRow(std::string_view name,
                            void (*run)(const typename Op::Params&, const Exec&)) {
  return {name, Isa::kRef, Always<Op>, run};
}

template <class Op>
constexpr Kernel<Op> CpuRow(std::string_view name, Isa isa,
                            void (*run)(const typename Op::Params&, const Exec&)) {
  return {name, isa, [](const typename Op::Shape& shape) { return cpu::Supports(shape); }, run};
}

using Avx2 = cpu::Launch<cpu::kAvx2>;
using Avx2Bytes = cpu::Launch<cpu::kAvx2Bytes>;
using Avx512 = cpu::Launch<cpu::kAvx512>;
using Avx512Vnni = cpu::Launch<cpu::kAvx512Vnni>;
using Avx512Bf16 = cpu::Launch<cpu::kAvx512Bf16>;
using SmallH = cpu::Launch<cpu::kAvx512SmallH>;
using Amx = cpu::Launch<cpu::kAmx>;
using AmxInt8 = cpu::Launch<cpu::kAmxInt8>;

bool IsBf16Decode(const MlaDecodeOp::Shape& shape) {
  return cpu::Supports(shape) &&
         (shape.cache == DType::kBF16 || shape.kind == CacheFormat::kF8 ||
          shape.kind == CacheFormat::kF8Dense || shape.kind == CacheFormat::kQ6);
}

bool IsS8Decode(const MlaDecodeOp::Shape& shape) {
  return cpu::Supports(shape) && shape.kind == CacheFormat::kI8 && shape.r <= cpu::kMaxS8Rope;
}

bool IsBf16Mha(const MhaOp::Shape& shape) {
  return cpu::Supports(shape) && shape.arithmetic == DType::kBF16;
}

// Intel cores run vdpbf16ps, the dot product of bf16, slower than f32 multiply-adds; AMD cores run it
// at twice their rate. Its rate binds where nothing is converted: with bf16 weights, for large H, and
// in mha. 8- and 4-bit weights convert faster to bf16 pairs than to f32 everywhere.
bool SlowBf16Gemm(const GemmOp::Shape& shape, Uarch uarch) {
  return uarch == Uarch::kIntelBf16 && shape.w == DType::kBF16;
}
bool SlowBf16Mha(const MhaOp::Shape& shape, Uarch uarch) {
  return uarch == Uarch::kIntelBf16 && IsBf16Mha(shape);
}

// H ≤ 3 over e4m3 rows: f32 arithmetic is faster than preparing keys for tiles or for bf16 pairs.
bool IsSmallH(const MlaDecodeOp::Shape& shape) {
  constexpr int64_t kHeads = 3;
  const bool f8 = shape.kind == CacheFormat::kF8 || shape.kind == CacheFormat::kF8Dense;
  return f8 && shape.h <= kHeads && shape.page_tokens % 16 == 0;
}
bool SlowBf16Decode(const MlaDecodeOp::Shape& shape, Uarch uarch) {
  return uarch == Uarch::kIntelBf16 && !IsSmallH(shape);
}
void Bf16Decode(const MlaDecodeOp::Params& p, const Exec& exec) {
  if (IsSmallH(MlaDecodeOp::ShapeOf(p))) return SmallH::MlaDecode(p, exec);
  Avx512Bf16::MlaDecode(p, exec);
}

// Tiles read 16 keys of a page in place; s8 tiles also need whole tiles of columns. q6 rows are
// rounded to bf16 first, which pays off from H = 8 on.
bool IsAmxDecode(const MlaDecodeOp::Shape& shape) {
  constexpr int64_t kHeads = 8;
  if (shape.page_tokens % 16 != 0) return false;
  if (shape.kind == CacheFormat::kI8)
    return IsS8Decode(shape) && shape.c % 64 == 0 && shape.r % 64 == 0;
  return IsBf16Decode(shape) && (shape.kind != CacheFormat::kQ6 || shape.h >= kHeads);
}
void AmxDecode(const MlaDecodeOp::Params& p, const Exec& exec) {
  const MlaDecodeOp::Shape shape = MlaDecodeOp::ShapeOf(p);
  if (shape.kind == CacheFormat::kI8) return AmxInt8::MlaDecode(p, exec);
  if (IsSmallH(shape)) return SmallH::MlaDecode(p, exec);
  Amx::MlaDecode(p, exec);
}

// Two targets, because s8 tiles have their own packing of A.
bool IsAmxGemm(const GemmOp::Shape& shape) {
  return cpu::SupportsAmxBf16(shape) || cpu::SupportsS8(shape);
}
void AmxGemm(const GemmOp::Params& p, const Exec& exec) {
  if (p.problems.front().x.dtype == DType::kI8) return AmxInt8::Gemm(p, exec);
  Amx::Gemm(p, exec);
}

// s8 products if the shape allows them, otherwise f32.
void Avx2Gemm(const GemmOp::Params& p, const Exec& exec) {
  if (cpu::SupportsS8(GemmOp::ShapeOf(p))) return Avx2Bytes::Gemm(p, exec);
  Avx2::Gemm(p, exec);
}

constexpr Kernel<GemmOp> kGemm[] = {
    RefRow<GemmOp>("ref.gemm", ref::Gemm),
    CpuRow<GemmOp>("avx2.gemm", Isa::kAvx2, Avx2Gemm),
    CpuRow<GemmOp>("avx512.gemm", Isa::kAvx512, Avx512::Gemm),
    {"avx512_vnni.gemm", Isa::kAvx512Vnni, cpu::SupportsS8, Avx512Vnni::Gemm},
    {"avx512_bf16.gemm", Isa::kAvx512Bf16, cpu::SupportsBf16, Avx512Bf16::Gemm, SlowBf16Gemm},
    {"amx.gemm", Isa::kAmx, IsAmxGemm, AmxGemm},
};
constexpr Kernel<GemmTOp> kGemmT[] = {
    RefRow<GemmTOp>("ref.gemm_t", ref::GemmT),
    CpuRow<GemmTOp>("avx2.gemm_t", Isa::kAvx2, Avx2::GemmT),
    CpuRow<GemmTOp>("avx512.gemm_t", Isa::kAvx512, Avx512::GemmT),
    {"avx512_vnni.gemm_t", Isa::kAvx512Vnni, cpu::SupportsVnni, Avx512Vnni::GemmT},
    {"avx512_bf16.gemm_t", Isa::kAvx512Bf16, cpu::SupportsFp8Bf16, Avx512Bf16::GemmT},
};
constexpr Kernel<QuantizeRowsOp> kQuantizeRows[] = {
    RefRow<QuantizeRowsOp>("ref.quantize_rows", ref::QuantizeRows),
    CpuRow<QuantizeRowsOp>("avx2.quantize_rows", Isa::kAvx2, Avx2::QuantizeRows),
    CpuRow<QuantizeRowsOp>("avx512.quantize_rows", Isa::kAvx512, Avx512::QuantizeRows),
};
constexpr Kernel<LogitMaxOp> kLogitMax[] = {
    RefRow<LogitMaxOp>("ref.logit_max", ref::LogitMax),
    CpuRow<LogitMaxOp>("avx2.logit_max", Isa::kAvx2, Avx2::LogitMax),
    CpuRow<LogitMaxOp>("avx512.logit_max", Isa::kAvx512, Avx512::LogitMax),
};
constexpr Kernel<TokenWeightSumOp> kTokenWeightSum[] = {
    RefRow<TokenWeightSumOp>("ref.token_weight_sum", ref::TokenWeightSum),
    CpuRow<TokenWeightSumOp>("avx2.token_weight_sum", Isa::kAvx2, Avx2::TokenWeightSum),
    CpuRow<TokenWeightSumOp>("avx512.token_weight_sum", Isa::kAvx512, Avx512::TokenWeightSum),
};
constexpr Kernel<TokenWeightsOp> kTokenWeights[] = {
    RefRow<TokenWeightsOp>("ref.token_weights", ref::TokenWeights),
    CpuRow<TokenWeightsOp>("avx2.token_weights", Isa::kAvx2, Avx2::TokenWeights),
    CpuRow<TokenWeightsOp>("avx512.token_weights", Isa::kAvx512, Avx512::TokenWeights),
};
constexpr Kernel<TokenHistogramOp> kTokenHistogram[] = {
    RefRow<TokenHistogramOp>("ref.token_histogram", ref::TokenHistogram),
    CpuRow<TokenHistogramOp>("avx2.token_histogram", Isa::kAvx2, Avx2::TokenHistogram),
    CpuRow<TokenHistogramOp>("avx512.token_histogram", Isa::kAvx512, Avx512::TokenHistogram),
};
constexpr Kernel<FindBucketOp> kFindBucket[] = {
    RefRow<FindBucketOp>("ref.find_bucket", ref::FindBucket),
    CpuRow<FindBucketOp>("avx2.find_bucket", Isa::kAvx2, Avx2::FindBucket),
    CpuRow<FindBucketOp>("avx512.find_bucket", Isa::kAvx512, Avx512::FindBucket),
};
constexpr Kernel<RmsNormOp> kRmsNorm[] = {
    RefRow<RmsNormOp>("ref.rms_norm", ref::RmsNorm),
    CpuRow<RmsNormOp>("avx2.rms_norm", Isa::kAvx2, Avx2::RmsNorm),
    CpuRow<RmsNormOp>("avx512.rms_norm", Isa::kAvx512, Avx512::RmsNorm),
};
constexpr Kernel<RopeAnglesOp> kRopeAngles[] = {
    RefRow<RopeAnglesOp>("ref.rope_angles", ref::RopeAngles)};
constexpr Kernel<RopeOp> kRope[] = {
    RefRow<RopeOp>("ref.rope", ref::Rope),
    CpuRow<RopeOp>("avx2.rope", Isa::kAvx2, Avx2::Rope),
    CpuRow<RopeOp>("avx512.rope", Isa::kAvx512, Avx512::Rope),
};
constexpr Kernel<SiluMulOp> kSiluMul[] = {
    RefRow<SiluMulOp>("ref.silu_mul", ref::SiluMul),
    CpuRow<SiluMulOp>("avx2.silu_mul", Isa::kAvx2, Avx2::SiluMul),
    CpuRow<SiluMulOp>("avx512.silu_mul", Isa::kAvx512, Avx512::SiluMul),
};
constexpr Kernel<AddOp> kAdd[] = {
    RefRow<AddOp>("ref.add", ref::Add),
    CpuRow<AddOp>("avx2.add", Isa::kAvx2, Avx2::Add),
    CpuRow<AddOp>("avx512.add", Isa::kAvx512, Avx512::Add),
};
constexpr Kernel<AddRmsNormOp> kAddRmsNorm[] = {
    RefRow<AddRmsNormOp>("ref.add_rms_norm", ref::AddRmsNorm),
    CpuRow<AddRmsNormOp>("avx2.add_rms_norm", Isa::kAvx2, Avx2::AddRmsNorm),
    CpuRow<AddRmsNormOp>("avx512.add_rms_norm", Isa::kAvx512, Avx512::AddRmsNorm),
};
constexpr Kernel<GatherOp> kGather[] = {
    RefRow<GatherOp>("ref.gather", ref::Gather),
    CpuRow<GatherOp>("avx2.gather", Isa::kAvx2, Avx2::Gather),
    CpuRow<GatherOp>("avx512.gather", Isa::kAvx512, Avx512::Gather),
};
constexpr Kernel<CastOp> kCast[] = {
    RefRow<CastOp>("ref.cast", ref::Cast),
    CpuRow<CastOp>("avx2.cast", Isa::kAvx2, Avx2::Cast),
    CpuRow<CastOp>("avx512.cast", Isa::kAvx512, Avx512::Cast),
};
constexpr Kernel<AppendOp> kAppend[] = {
    RefRow<AppendOp>("ref.append", ref::Append),
    CpuRow<AppendOp>("avx2.append", Isa::kAvx2, Avx2::Append),
    CpuRow<AppendOp>("avx512.append", Isa::kAvx512, Avx512::Append),
};
constexpr Kernel<NormRopeAppendOp> kNormRopeAppend[] = {
    RefRow<NormRopeAppendOp>("ref.norm_rope_append", ref::NormRopeAppend),
    CpuRow<NormRopeAppendOp>("avx2.norm_rope_append", Isa::kAvx2, Avx2::NormRopeAppend),
    CpuRow<NormRopeAppendOp>("avx512.norm_rope_append", Isa::kAvx512, Avx512::NormRopeAppend),
};
constexpr Kernel<GatherPagesOp> kGatherPages[] = {
    RefRow<GatherPagesOp>("ref.gather_pages", ref::GatherPages),
    CpuRow<GatherPagesOp>("avx2.gather_pages", Isa::kAvx2, Avx2::GatherPages),
    CpuRow<GatherPagesOp>("avx512.gather_pages", Isa::kAvx512, Avx512::GatherPages),
};
constexpr Kernel<MlaDecodeOp> kMlaDecode[] = {
    RefRow<MlaDecodeOp>("ref.mla_decode", ref::MlaDecode),
    CpuRow<MlaDecodeOp>("avx2.mla_decode", Isa::kAvx2, Avx2::MlaDecode),
    CpuRow<MlaDecodeOp>("avx512.mla_decode", Isa::kAvx512, Avx512::MlaDecode),
    {"avx512_vnni.mla_decode", Isa::kAvx512Vnni, IsS8Decode, Avx512Vnni::MlaDecode},
    {"avx512_bf16.mla_decode", Isa::kAvx512Bf16, IsBf16Decode, Bf16Decode, SlowBf16Decode},
    {"amx.mla_decode", Isa::kAmx, IsAmxDecode, AmxDecode},
};
constexpr Kernel<MhaOp> kMha[] = {
    RefRow<MhaOp>("ref.mha", ref::Mha),
    CpuRow<MhaOp>("avx2.mha", Isa::kAvx2, Avx2::Mha),
    CpuRow<MhaOp>("avx512.mha", Isa::kAvx512, Avx512::Mha),
    {"avx512_bf16.mha", Isa::kAvx512Bf16, IsBf16Mha, Avx512Bf16::Mha, SlowBf16Mha},
    {"amx.mha", Isa::kAmx, IsBf16Mha, Amx::Mha},
};
constexpr Kernel<LseMergeOp> kLseMerge[] = {
    RefRow<LseMergeOp>("ref.lse_merge", ref::LseMerge),
    CpuRow<LseMergeOp>("avx2.lse_merge", Isa::kAvx2, Avx2::LseMerge),
    CpuRow<LseMergeOp>("avx512.lse_merge", Isa::kAvx512, Avx512::LseMerge),
};
constexpr Kernel<RouteOp> kRoute[] = {RefRow<RouteOp>("ref.route", ref::Route)};
constexpr Kernel<GroupByExpertOp> kGroupByExpert[] = {
    RefRow<GroupByExpertOp>("ref.group_by_expert", ref::GroupByExpert)};
constexpr Kernel<CombineOp> kCombine[] = {
    RefRow<CombineOp>("ref.combine", ref::Combine),
    CpuRow<CombineOp>("avx2.combine", Isa::kAvx2, Avx2::Combine),
    CpuRow<CombineOp>("avx512.combine", Isa::kAvx512, Avx512::Combine),
};

template <class Op>
void AddInfo(std::vector<KernelInfo>& out) {
  for (const Kernel<Op>& row : Kernels<Op>()) out.push_back({Op::kName, row.name, row.isa});
}

}  // namespace

template <>
std::span<const Kernel<GemmOp>> Kernels<GemmOp>() {
  return kGemm;
}
template <>
std::span<const Kernel<GemmTOp>> Kernels<GemmTOp>() {
  return kGemmT;
}
template <>
std::span<const Kernel<QuantizeRowsOp>> Kernels<QuantizeRowsOp>() {
  return kQuantizeRows;
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
std::span<const Kernel<MlaDecodeOp>> Kernels<MlaDecodeOp>() {
  return kMlaDecode;
}
template <>
std::span<const Kernel<MhaOp>> Kernels<MhaOp>() {
  return kMha;
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

std::vector<KernelInfo> AllKernels() {
  std::vector<KernelInfo> out;
  AddInfo<GemmOp>(out);
  AddInfo<GemmTOp>(out);
  AddInfo<MlaDecodeOp>(out);
  AddInfo<MhaOp>(out);
  AddInfo<LseMergeOp>(out);
  AddInfo<AppendOp>(out);
  AddInfo<NormRopeAppendOp>(out);
  AddInfo<GatherPagesOp>(out);
  AddInfo<RouteOp>(out);
  AddInfo<GroupByExpertOp>(out);
  AddInfo<CombineOp>(out);
  AddInfo<RmsNormOp>(out);
  AddInfo<RopeAnglesOp>(out);
  AddInfo<RopeOp>(out);
  AddInfo<SiluMulOp>(out);
  AddInfo<AddOp>(out);
  AddInfo<AddRmsNormOp>(out);
  AddInfo<GatherOp>(out);
  AddInfo<CastOp>(out);
  AddInfo<QuantizeRowsOp>(out);
  AddInfo<LogitMaxOp>(out);
  AddInfo<TokenWeightSumOp>(out);
  AddInfo<TokenWeightsOp>(out);
  AddInfo<TokenHistogramOp>(out);
  AddInfo<FindBucketOp>(out);
  return out;
}

}  // namespace latte
