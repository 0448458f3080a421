// The kernels of gemm, by rising instruction set; within one, the general kernel first. Select
// (registry.h) takes the last one that fits.
#include <array>

#include "src/kernels/backends.h"
#include "src/kernels/cpu/tables/table.h"
#include "src/kernels/registry.h"
#include "src/kernels/rule_text.h"

namespace latte {
namespace cpu {
namespace {

using Gemms = GemmOp::Shape;

// Orders of sums along K; the headers of the kernels define them.
constexpr std::string_view kF32Avx2 = "f32x8", kF32Avx512 = "f32x16", kBf16 = "bf16x32",
                           kBf16W8 = "bf16x16", kBf16Amx = "bf16 tiles", kS8 = "s8 chunks of 128";

// The types that kernels multiply, among the shapes that all of them support.
bool TakesPlain(const Gemms& s) { return IsPlain(s.x) && IsPlain(s.w); }
bool TakesBf16(const Gemms& s) { return s.x == DType::kBF16 && s.w == DType::kBF16; }
bool TakesBf16W8(const Gemms& s) {
  return s.x == DType::kBF16 && (IsF8(s.w) || s.w == DType::kI8 || s.w == DType::kU4);
}
bool TakesAmxBf16(const Gemms& s) {
  if (s.w == DType::kBF16) return s.x == DType::kBF16 && s.scale_group == 0;
  return TakesBf16W8(s) && s.w != DType::kU4 && s.scale_group > 0;
}
bool TakesFp8(const Gemms& s) { return TakesAmxBf16(s) && s.w == DType::kF8E4M3; }
bool TakesS8(const Gemms& s) {
  return s.x == DType::kI8 && (s.w == DType::kI8 || s.w == DType::kU4) && s.scale_group > 0;
}
bool TakesS8S8(const Gemms& s) { return TakesS8(s) && s.w == DType::kI8; }

// Limits beyond the members of GemmKernel. Scales change at whole K steps of tiles.
constexpr auto kTileScales = [](const auto& s) {
  return s.scale_group == s.k || (IsMultiple(s.scale_group, 32) &&
                                  (s.w != DType::kF8E4M3 || IsMultiple(s.scale_group, 128)));
};
// A chunk of 128 columns has one scale, of 4-bit weights up to four.
constexpr auto kChunkScales = [](const auto& s) {
  return IsMultiple(s.x_group, 128) && (s.scale_group == s.k || IsMultiple(s.scale_group, 128) ||
                                        (s.w == DType::kU4 && IsMultiple(s.scale_group, 32)));
};
constexpr auto k8x8Scales = [](const auto& s) {
  return IsMultiple(s.x_group, 128) && s.scale_group == s.k && IsMultiple(s.k, 128);
};

// Shape: GemmOp::Shape or its names.
template <class Shape>
auto WithinLimits(const GemmKernel& kernel, const Shape& s) {
  using Holds = decltype(s.m <= kernel.max_m);
  const Holds m = kernel.max_m == 0 ? Holds(true) : s.m <= kernel.max_m;
  const Holds k = kernel.max_k == 0 ? Holds(true) : s.k <= kernel.max_k;
  const Holds n = kernel.min_n == 0 ? Holds(true) : s.n >= kernel.min_n;
  return m && k && n;
}

constexpr int64_t kMaxResidentS8A = 16 << 10;  // as kMaxResidentA, of int8

// One stream of rows of B per core, or several (Tuning::many_dram_streams).
constexpr auto kReadsManyStreams =
    RuleOf<GemmOp>([](const auto&, auto uarch) { return HasManyDramStreams(uarch); });
constexpr auto kKeepsAInL1 =
    RuleOf<GemmOp>([](const auto& s, auto) { return s.m * s.k <= kMaxResidentA; });

// Intel cores run vdpbf16ps, the dot product of bf16, slower than f32 multiply-adds; AMD cores run
// it at twice their rate. Its rate binds where nothing is converted: with bf16 weights. 8- and
// 4-bit weights convert faster to bf16 pairs than to f32 everywhere.
constexpr auto kHasSlowBf16Gemm =
    RuleOf<GemmOp>([](const auto&, auto uarch) { return uarch == Uarch::kIntelBf16; });

// From M = 16 the tile of four rows of A pays off. With many DRAM streams packing B is faster.
constexpr auto kPrefers4x6 = RuleOf<GemmOp>(
    [](const auto& s, auto uarch) { return s.m >= 16 && !HasManyDramStreams(uarch); });
constexpr auto kPrefers3x8 =
    RuleOf<GemmOp>([](const auto& s, auto) { return s.m > kBf16Gemm4x6.max_m; });

// Rows of B pass one by one: A stays in the L1, and one sequential stream per core reads DRAM
// fastest. Rows up to 1024 columns do not fill a vector of chunk sums. With four scale groups per
// chunk of 128 columns this pays off for M = 1 alone.
constexpr auto kPrefersGemv = RuleOf<GemmOp>([](const auto& s, auto uarch) {
  const auto whole_chunks = s.scale_group == s.k || IsMultiple(s.scale_group, 128);
  return !HasManyDramStreams(uarch) &&
         ((!whole_chunks && s.m == 1) ||
          (whole_chunks && s.k > 1024 && (s.m == 1 || s.m * s.k <= kMaxResidentS8A)));
});
constexpr auto kPrefers8x8 =
    RuleOf<GemmOp>([](const auto& s, auto uarch) { return s.m >= 5 && uarch == Uarch::kZen4; });
// At most an eighth of the lanes, which hold rows of A, stays empty. 4-bit weights have short scale
// groups, for which packing B is faster.
constexpr auto kFillsLanes =
    RuleOf<GemmOp>([](const auto& s, auto) { return 8 * s.m >= 7 * RoundUp(s.m, 16); });

// Vectors are faster than tiles up to M = 5, and with 4-bit weights, which tiles unpack first, up
// to 8.
constexpr auto kPrefersAmxGemv =
    RuleOf<GemmOp>([](const auto& s, auto) { return s.m <= 5 || s.w == DType::kU4; });

struct GemmEntry {
  Kernel<GemmOp> kernel;
  const GemmKernel* code = nullptr;  // null: the reference
};

template <const GemmKernel& kCode>
void RunGemm(const GemmOp::Params&, const Exec&);

// Adds the code and the limits of a kernel to its entry.
template <const GemmKernel& kCode, bool (*kTakes)(const Gemms&), auto kLimits = kAnySize>
constexpr GemmEntry GemmEntryOf(Kernel<GemmOp> kernel) {
  kernel.supports = [](const Gemms& s) {
    return Supports(s) && kTakes(s) && kLimits(s) && WithinLimits(kCode, s);
  };
  kernel.limits = [] {
    const ShapeNames<GemmOp> s;
    return kLimits(s) && WithinLimits(kCode, s);
  };
  kernel.run = RunGemm<kCode>;
  kernel.tile = TileText<kCode>;
  return {kernel, &kCode};
}

constexpr GemmEntry kGemmEntries[] = {
    {Reference<GemmOp>("ref.gemm", ref::Gemm)},

    GemmEntryOf<kAvx2GemmF32, Always<GemmOp>>(
        {.name = "avx2.gemm_f32", .isa = x86::kAvx2, .order = kF32Avx2}),
    GemmEntryOf<kAvx2GemmF32Streams, TakesPlain>({.name = "avx2.gemm_f32_streams",
                                                  .isa = x86::kAvx2,
                                                  .is_preferred = kReadsManyStreams,
                                                  .order = kF32Avx2}),
    GemmEntryOf<kAvx2GemmS8Packed64, TakesS8, kChunkScales>(
        {.name = "avx2.gemm_s8_packed64", .isa = x86::kAvx2, .order = kS8}),
    GemmEntryOf<kAvx2GemmS8Gemv, TakesS8, kChunkScales>(
        {.name = "avx2.gemm_s8_gemv", .isa = x86::kAvx2, .order = kS8}),

    GemmEntryOf<kAvx512GemmF32, Always<GemmOp>>(
        {.name = "avx512.gemm_f32", .isa = x86::kAvx512, .order = kF32Avx512}),
    GemmEntryOf<kAvx512GemmF32Streams, TakesPlain>({.name = "avx512.gemm_f32_streams",
                                                    .isa = x86::kAvx512,
                                                    .is_preferred = kReadsManyStreams,
                                                    .order = kF32Avx512}),

    GemmEntryOf<kVnniGemmPacked64, TakesS8, kChunkScales>(
        {.name = "avx512_vnni.gemm_s8_packed64", .isa = x86::kAvx512Vnni, .order = kS8}),
    GemmEntryOf<kVnniGemmBcast, TakesS8S8, kChunkScales>({.name = "avx512_vnni.gemm_s8_bcast",
                                                          .isa = x86::kAvx512Vnni,
                                                          .is_preferred = kFillsLanes,
                                                          .order = kS8}),
    GemmEntryOf<kVnniGemm16xM, TakesS8, kChunkScales>(
        {.name = "avx512_vnni.gemm_s8_16xm", .isa = x86::kAvx512Vnni, .order = kS8}),
    GemmEntryOf<kVnniGemm8x8, TakesS8S8, k8x8Scales>({.name = "avx512_vnni.gemm_s8_8x8c8",
                                                      .isa = x86::kAvx512Vnni,
                                                      .is_preferred = kPrefers8x8,
                                                      .order = kS8}),
    GemmEntryOf<kVnniGemmGemv, TakesS8, kChunkScales>({.name = "avx512_vnni.gemm_s8_gemv",
                                                       .isa = x86::kAvx512Vnni,
                                                       .is_preferred = kPrefersGemv,
                                                       .order = kS8}),

    GemmEntryOf<kBf16Gemm, TakesBf16>({.name = "avx512_bf16.gemm_bf16",
                                       .isa = x86::kAvx512Bf16,
                                       .is_slow = kHasSlowBf16Gemm,
                                       .order = kBf16}),
    GemmEntryOf<kBf16GemmSmallM, TakesBf16>({.name = "avx512_bf16.gemm_bf16_small_m",
                                             .isa = x86::kAvx512Bf16,
                                             .is_preferred = kKeepsAInL1,
                                             .is_slow = kHasSlowBf16Gemm,
                                             .order = kBf16}),
    GemmEntryOf<kBf16Gemm4x6, TakesBf16>({.name = "avx512_bf16.gemm_bf16_4x6",
                                          .isa = x86::kAvx512Bf16,
                                          .is_preferred = kPrefers4x6,
                                          .is_slow = kHasSlowBf16Gemm,
                                          .order = kBf16}),
    GemmEntryOf<kBf16Gemm3x8, TakesBf16>({.name = "avx512_bf16.gemm_bf16_packed_3x8",
                                          .isa = x86::kAvx512Bf16,
                                          .is_preferred = kPrefers3x8,
                                          .is_slow = kHasSlowBf16Gemm,
                                          .order = kBf16}),
    GemmEntryOf<kBf16GemmW8, TakesBf16W8>(
        {.name = "avx512_bf16.gemm_bf16_w8", .isa = x86::kAvx512Bf16, .order = kBf16W8}),
    GemmEntryOf<kBf16GemmW8Gemv, TakesBf16W8>(
        {.name = "avx512_bf16.gemm_bf16_w8_gemv", .isa = x86::kAvx512Bf16, .order = kBf16W8}),
    GemmEntryOf<kBf16GemmW8Streams, TakesBf16W8>({.name = "avx512_bf16.gemm_bf16_w8_streams",
                                                  .isa = x86::kAvx512Bf16,
                                                  .is_preferred = kReadsManyStreams,
                                                  .order = kBf16W8}),

    GemmEntryOf<kAmxGemmBf16, TakesAmxBf16, kTileScales>(
        {.name = "amx.gemm_bf16", .isa = x86::kAmx, .order = kBf16Amx}),
    GemmEntryOf<kAmxGemmBf16SmallM, TakesAmxBf16, kTileScales>(
        {.name = "amx.gemm_bf16_small_m", .isa = x86::kAmx, .order = kBf16Amx}),
    GemmEntryOf<kAmxGemmFp8Gemv, TakesFp8, kTileScales>(
        {.name = "amx.gemm_fp8_gemv", .isa = x86::kAmx, .order = kBf16Amx}),
    GemmEntryOf<kAmxGemmS8, TakesS8, kChunkScales>(
        {.name = "amx.gemm_s8", .isa = x86::kAmx, .order = kS8}),
    GemmEntryOf<kAmxGemmS8SmallM, TakesS8, kChunkScales>(
        {.name = "amx.gemm_s8_small_m", .isa = x86::kAmx, .order = kS8}),
    GemmEntryOf<kAmxGemmS8Gemv, TakesS8, kChunkScales>({.name = "amx.gemm_s8_gemv",
                                                        .isa = x86::kAmx,
                                                        .is_preferred = kPrefersAmxGemv,
                                                        .order = kS8}),
};

constexpr auto kGemm = [] {
  std::array<Kernel<GemmOp>, std::size(kGemmEntries)> out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = kGemmEntries[i].kernel;
  return out;
}();

const GemmKernel* CodeOf(const Kernel<GemmOp>& kernel) {
  const auto has_run = [&](const GemmEntry& entry) { return entry.kernel.run == kernel.run; };
  return std::ranges::find_if(kGemmEntries, has_run)->code;
}

// The problems of a group differ in size. Each takes the fastest kernel for its own size that has
// the order of sums of the kernel that was selected for the call.
template <const GemmKernel& kCode>
void RunGemm(const GemmOp::Params& p, const Exec& exec) {
  if (p.problems.size() == 1) {
    const GemmKernel* const kernel = &kCode;
    return Gemm(p.problems, {&kernel, 1}, exec);
  }
  const Kernel<GemmOp>& selected =
      std::ranges::find(kGemmEntries, &kCode, &GemmEntry::code)->kernel;
  const auto own = [&](const GemmProblem& problem) {
    const GemmOp::Shape shape = GemmOp::ShapeOf(problem);
    return CodeOf(exec.selections == nullptr
                      ? SelectPeer(selected, shape, *exec.machine)
                      : exec.selections->PeerOf(selected, shape, *exec.machine));
  };
  std::array<const GemmKernel*, kMaxProblems> kernels;
  for (size_t begin = 0; begin < p.problems.size(); begin += kMaxProblems) {
    const auto problems =
        p.problems.subspan(begin, std::min(kMaxProblems, p.problems.size() - begin));
    std::ranges::transform(problems, kernels.begin(), own);
    Gemm(problems, {kernels.data(), problems.size()}, exec);
  }
}

}  // namespace

template <>
std::span<const Kernel<GemmOp>> Kernels<GemmOp>() {
  return kGemm;
}

}  // namespace cpu
}  // namespace latte
