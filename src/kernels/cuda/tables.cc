// The kernels of GPUs, for each op. `any` kernels take every shape and sum in f32, in an order that
// only the sizes of one result decide.
#include <array>
#include <type_traits>

#include "src/kernels/backends.h"
#include "src/kernels/cuda/isa.h"
#include "src/kernels/cuda/launch/launch.h"
#include "src/kernels/rule_text.h"

namespace latte::cuda {
namespace {

constexpr bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}
constexpr bool IsCache(DType dtype, CacheFormat kind) {
  return kind != CacheFormat::kPlain || IsFloat(dtype);
}
constexpr int64_t kMostColumns = 1024;  // of a value of attention (any/attention.cuh)

template <class Op>
using Rule = bool (*)(const typename Op::Shape&);
template <class Op>
using Launcher = void (*)(const typename Op::Params&, const Exec&);

template <class Op>
constexpr bool Always(const typename Op::Shape&) {
  return true;
}

template <class Op>
constexpr std::array<Kernel<Op>, 1> Any(std::string_view name, Launcher<Op> run,
                                        Rule<Op> supports = Always<Op>) {
  return {Kernel<Op>{.name = name,
                     .isa = kAnyGpu,
                     .supports = supports,
                     .run = run,
                     .order = "any",
                     .remark = "not yet run on hardware"}};
}

template <class Op>
constexpr auto AnyAttention(std::string_view name, Launcher<Op> run, Rule<Op> supports,
                            Clause (*limits)() = nullptr) {
  auto out = Any<Op>(name, run, supports);
  out[0].arithmetic = "f32";
  out[0].limits = limits;
  return out;
}

// Products of all activations with all weights. gemm_t has no scales of activations.
template <class Op>
constexpr bool MultipliesTypes(const typename Op::Shape& s) {
  const bool int8 = s.x == DType::kI8 && !std::is_same_v<Op, GemmTOp>;
  return (IsFloat(s.x) || int8) && IsWeight(s.w);
}

// The kernels of an op; none for ops of the host.
template <class Op>
constexpr std::array<Kernel<Op>, 0> kRows = {};

template <>
constexpr auto kRows<GemmOp> = Any<GemmOp>("any.gemm", LaunchGemm, MultipliesTypes<GemmOp>);
template <>
constexpr auto kRows<GemmTOp> = Any<GemmTOp>("any.gemm_t", LaunchGemmT, MultipliesTypes<GemmTOp>);
template <>
constexpr auto kRows<ExpertGemmOp> = Any<ExpertGemmOp>("any.expert_gemm", LaunchExpertGemm,
                                                       MultipliesTypes<ExpertGemmOp>);
constexpr auto kLatentFits = [](const auto& s) { return s.c <= kMostColumns; };
template <>
constexpr auto kRows<MlaDecodeOp> = AnyAttention<MlaDecodeOp>(
    "any.mla_decode", LaunchMlaDecode,
    [](const MlaDecodeOp::Shape& s) { return IsCache(s.cache, s.kind) && kLatentFits(s); },
    [] { return kLatentFits(ShapeNames<MlaDecodeOp>()); });
template <>
constexpr auto kRows<IndexTopKOp> = AnyAttention<IndexTopKOp>("any.index_topk", LaunchIndexTopK,
                                                              [](const IndexTopKOp::Shape& s) {
                                                                return IsCache(s.cache, s.kind);
                                                              });
constexpr auto kValuesFit = [](const auto& s) { return s.v <= kMostColumns; };
template <>
constexpr auto kRows<MhaOp> = AnyAttention<MhaOp>(
    "any.mha", LaunchMha, [](const MhaOp::Shape& s) { return kValuesFit(s); },
    [] { return kValuesFit(ShapeNames<MhaOp>()); });
template <>
constexpr auto kRows<LseMergeOp> = Any<LseMergeOp>("any.lse_merge", LaunchLseMerge);
template <>
constexpr auto kRows<AppendOp> = Any<AppendOp>("any.append", LaunchAppend,
                                               [](const AppendOp::Shape& s) {
                                                 return IsCache(s.cache, s.kind);
                                               });
template <>
constexpr auto kRows<NormRopeAppendOp> = Any<NormRopeAppendOp>(
    "any.norm_rope_append", LaunchNormRopeAppend,
    [](const NormRopeAppendOp::Shape& s) { return IsFloat(s.w) && IsCache(s.cache, s.kind); });
template <>
constexpr auto kRows<GatherPagesOp> = Any<GatherPagesOp>("any.gather_pages", LaunchGatherPages,
                                                         [](const GatherPagesOp::Shape& s) {
                                                           return IsCache(s.cache, s.kind);
                                                         });
template <>
constexpr auto kRows<CopyPageOp> = Any<CopyPageOp>("any.copy_page", LaunchCopyPage);
template <>
constexpr auto kRows<RouteOp> = Any<RouteOp>("any.route", LaunchRoute);
template <>
constexpr auto kRows<GroupByExpertOp> = Any<GroupByExpertOp>("any.group_by_expert",
                                                             LaunchGroupByExpert);
template <>
constexpr auto kRows<CombineOp> = Any<CombineOp>("any.combine", LaunchCombine);
template <>
constexpr auto kRows<RmsNormOp> = Any<RmsNormOp>("any.rms_norm", LaunchRmsNorm,
                                                 [](const RmsNormOp::Shape& s) {
                                                   return IsFloat(s.w);
                                                 });
template <>
constexpr auto kRows<AddRmsNormOp> = Any<AddRmsNormOp>("any.add_rms_norm", LaunchAddRmsNorm,
                                                       [](const AddRmsNormOp::Shape& s) {
                                                         return IsFloat(s.w);
                                                       });
template <>
constexpr auto kRows<LayerNormOp> = Any<LayerNormOp>("any.layer_norm", LaunchLayerNorm,
                                                     [](const LayerNormOp::Shape& s) {
                                                       return IsFloat(s.w) && IsFloat(s.b);
                                                     });
template <>
constexpr auto kRows<RopeAnglesOp> = Any<RopeAnglesOp>("any.rope_angles", LaunchRopeAngles);
template <>
constexpr auto kRows<RopeOp> = Any<RopeOp>("any.rope", LaunchRope);
template <>
constexpr auto kRows<AddOp> = Any<AddOp>("any.add", LaunchAdd);
template <>
constexpr auto kRows<GatherOp> = Any<GatherOp>("any.gather", LaunchGather,
                                               [](const GatherOp::Shape& s) {
                                                 return IsPlain(s.x) || IsBlocks(s.x) ||
                                                        (s.x == DType::kI8 && s.y == s.x);
                                               });
template <>
constexpr auto kRows<CastOp> = Any<CastOp>("any.cast", LaunchCast, Always<CastOp>);
template <>
constexpr auto kRows<QuantizeRowsOp> = Any<QuantizeRowsOp>("any.quantize_rows", LaunchQuantizeRows);
template <>
constexpr auto kRows<QueryTemperatureOp> = Any<QueryTemperatureOp>("any.query_temperature",
                                                                   LaunchQueryTemperature);
template <>
constexpr auto kRows<FiniteRowsOp> = Any<FiniteRowsOp>("any.finite_rows", LaunchFiniteRows);
template <>
constexpr auto kRows<PackDraftsOp> = Any<PackDraftsOp>("any.pack_drafts", LaunchPackDrafts);

}  // namespace

template <class Op>
std::span<const Kernel<Op>> Kernels() {
  return kRows<Op>;
}

// Makes the compiler emit Kernels for every op.
template <class... Ops>
struct Lists {
  std::tuple<std::span<const Kernel<Ops>> (*)()...> of{&cuda::Kernels<Ops>...};
};
extern const AllOps<Lists> kLists;
const AllOps<Lists> kLists;

}  // namespace latte::cuda
