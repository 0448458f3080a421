// The kernels of gemm and gemm_t, by rising instruction set; within one, the general kernel first.
// Select (registry.h) takes the last one that fits.
#include <array>

#include "src/kernels/backends.h"
#include "src/kernels/cpu/tables/table.h"
#include "src/kernels/registry.h"

namespace latte {
namespace cpu {
namespace {

using Gemms = GemmOp::Shape;
using GemmTs = GemmTOp::Shape;

// Orders of sums along K; the headers of the kernels define them.
constexpr std::string_view kF32Avx2 = "f32x8", kF32Avx512 = "f32x16", kBf16 = "bf16x32",
                           kBf16W8 = "bf16x16", kBf16Amx = "bf16 tiles", kS8 = "s8 chunks of 128",
                           kRows = "rows in order", kBf16Rows = "pairs of rows",
                           kS16Rows = "s16 rows", kS8Rows = "s8 rows";

bool WithinLimits(const GemmKernel& kernel, const Gemms& s) {
  return (kernel.max_m == 0 || s.m <= kernel.max_m) && (kernel.max_k == 0 || s.k <= kernel.max_k) &&
         s.n >= kernel.min_n;
}

template <const GemmKernel& kKernel>
bool SupportsF32(const Gemms& s) {
  return Supports(s) && WithinLimits(kKernel, s);
}
// A and B of 16 or 32 bits.
template <const GemmKernel& kKernel>
bool SupportsF32Streams(const Gemms& s) {
  return SupportsF32<kKernel>(s) && IsPlain(s.x) && IsPlain(s.w);
}
template <const GemmKernel& kKernel>
bool SupportsBf16Bf16(const Gemms& s) {
  return SupportsBf16(s) && s.w == DType::kBF16 && WithinLimits(kKernel, s);
}
template <const GemmKernel& kKernel>
bool SupportsBf16W8(const Gemms& s) {
  return SupportsBf16(s) && s.w != DType::kBF16 && WithinLimits(kKernel, s);
}
template <const GemmKernel& kKernel>
bool SupportsS8Of(const Gemms& s) {
  return SupportsS8(s) && WithinLimits(kKernel, s);
}
template <const GemmKernel& kKernel>
bool SupportsS8S8(const Gemms& s) {
  return SupportsS8Of<kKernel>(s) && s.w == DType::kI8;
}
bool Supports8x8(const Gemms& s) {
  return SupportsS8S8<kVnniGemm8x8>(s) && s.scale_group == s.k && s.k % 128 == 0;
}
template <const GemmKernel& kKernel>
bool SupportsAmxOf(const Gemms& s) {
  return SupportsAmxBf16(s) && WithinLimits(kKernel, s);
}
bool SupportsFp8Gemv(const Gemms& s) {
  return SupportsAmxOf<kAmxGemmFp8Gemv>(s) && s.w == DType::kF8E4M3;
}

// Largest A, in values, that stays in the L1 while rows of B pass one by one: of bf16 and of int8.
constexpr int64_t kMaxResidentA = 12 << 10;
constexpr int64_t kMaxResidentS8A = 16 << 10;

// One stream of rows of B per core, or several (Tuning::many_dram_streams).
bool ReadsManyStreams(const Gemms&, Uarch uarch) { return HasManyDramStreams(uarch); }
bool KeepsAInL1(const Gemms& s, Uarch) { return s.m * s.k <= kMaxResidentA; }

// Intel cores run vdpbf16ps, the dot product of bf16, slower than f32 multiply-adds; AMD cores run
// it at twice their rate. Its rate binds where nothing is converted: with bf16 weights. 8- and
// 4-bit weights convert faster to bf16 pairs than to f32 everywhere.
bool HasSlowBf16Gemm(const Gemms&, Uarch uarch) { return uarch == Uarch::kIntelBf16; }

// From M = 16 the tile of four rows of A pays off. With many DRAM streams packing B is faster.
bool Prefers4x6(const Gemms& s, Uarch uarch) {
  constexpr int64_t kMinM = 16;
  return s.m >= kMinM && !HasManyDramStreams(uarch);
}
bool Prefers3x8(const Gemms& s, Uarch) { return s.m > kBf16Gemm4x6.max_m; }

// Rows of B pass one by one: A stays in the L1, and one sequential stream per core reads DRAM
// fastest. Rows up to 1024 columns do not fill a vector of chunk sums. With four scale groups per
// chunk of 128 columns ("short scale groups") this pays off for M = 1 alone.
bool PrefersGemv(const Gemms& s, Uarch uarch) {
  constexpr int64_t kMinK = 1024;
  if (HasManyDramStreams(uarch)) return false;
  if (s.scale_group != s.k && s.scale_group % 128 != 0) return s.m == 1;
  return s.k > kMinK && (s.m == 1 || s.m * s.k <= kMaxResidentS8A);
}
bool Prefers8x8(const Gemms& s, Uarch uarch) {
  constexpr int64_t kMinM = 5;
  return s.m >= kMinM && uarch == Uarch::kZen4;
}
// At most an eighth of the lanes, which hold rows of A, stays empty. 4-bit weights have short scale
// groups, for which packing B is faster.
bool FillsLanes(const Gemms& s, Uarch) {
  constexpr int64_t kLanes = 16;
  return 8 * s.m >= 7 * RoundUp(s.m, kLanes);
}

// Vectors are faster than tiles up to M = 5, and with 4-bit weights, which tiles unpack first, up
// to 8.
bool PrefersAmxGemv(const Gemms& s, Uarch) {
  constexpr int64_t kMaxS8M = 5;
  return s.w == DType::kU4 || s.m <= kMaxS8M;
}

struct GemmEntry {
  Kernel<GemmOp> kernel;
  const GemmKernel* code = nullptr;  // null: the reference
};

template <const GemmKernel& kCode>
void RunGemm(const GemmOp::Params&, const Exec&);

template <const GemmKernel& kCode>
constexpr GemmEntry EntryOf(Kernel<GemmOp> kernel) {
  kernel.run = RunGemm<kCode>;
  return {kernel, &kCode};
}

constexpr GemmEntry kGemmEntries[] = {
    {Reference<GemmOp>("ref.gemm", ref::Gemm)},

    EntryOf<kAvx2GemmF32>({.name = "avx2.gemm_f32",
                           .isa = x86::kAvx2,
                           .supports = SupportsF32<kAvx2GemmF32>,
                           .types = "any × any",
                           .block = "3 × 4",
                           .order = kF32Avx2}),
    EntryOf<kAvx2GemmF32Streams>({.name = "avx2.gemm_f32_streams",
                                  .isa = x86::kAvx2,
                                  .supports = SupportsF32Streams<kAvx2GemmF32Streams>,
                                  .is_preferred = ReadsManyStreams,
                                  .types = "f32, bf16, f16 × f32, bf16, f16",
                                  .block = "M × 4",
                                  .when = "M ≤ 3; many DRAM streams",
                                  .order = kF32Avx2}),
    EntryOf<kAvx2GemmS8Packed64>({.name = "avx2.gemm_s8_packed64",
                                  .isa = x86::kAvx2,
                                  .supports = SupportsS8Of<kAvx2GemmS8Packed64>,
                                  .types = "i8 × i8, u4",
                                  .block = "4 × 16",
                                  .order = kS8}),
    EntryOf<kAvx2GemmS8Gemv>({.name = "avx2.gemm_s8_gemv",
                              .isa = x86::kAvx2,
                              .supports = SupportsS8Of<kAvx2GemmS8Gemv>,
                              .types = "i8 × i8, u4",
                              .block = "M × 8",
                              .when = "M ≤ 4",
                              .order = kS8}),

    EntryOf<kAvx512GemmF32>({.name = "avx512.gemm_f32",
                             .isa = x86::kAvx512,
                             .supports = SupportsF32<kAvx512GemmF32>,
                             .types = "any × any",
                             .block = "6 × 4",
                             .order = kF32Avx512}),
    EntryOf<kAvx512GemmF32Streams>({.name = "avx512.gemm_f32_streams",
                                    .isa = x86::kAvx512,
                                    .supports = SupportsF32Streams<kAvx512GemmF32Streams>,
                                    .is_preferred = ReadsManyStreams,
                                    .types = "f32, bf16, f16 × f32, bf16, f16",
                                    .block = "M × 4",
                                    .when = "M ≤ 6; many DRAM streams",
                                    .order = kF32Avx512}),

    EntryOf<kVnniGemmPacked64>({.name = "avx512_vnni.gemm_s8_packed64",
                                .isa = x86::kAvx512Vnni,
                                .supports = SupportsS8Of<kVnniGemmPacked64>,
                                .types = "i8 × i8, u4",
                                .block = "6 × 64",
                                .order = kS8}),
    EntryOf<kVnniGemmBcast>({.name = "avx512_vnni.gemm_s8_bcast",
                             .isa = x86::kAvx512Vnni,
                             .supports = SupportsS8S8<kVnniGemmBcast>,
                             .is_preferred = FillsLanes,
                             .types = "i8 × i8",
                             .block = "16–64 × 3–12",
                             .when = "M fills 7/8 of groups of 16",
                             .order = kS8}),
    EntryOf<kVnniGemm16xM>({.name = "avx512_vnni.gemm_s8_16xm",
                            .isa = x86::kAvx512Vnni,
                            .supports = SupportsS8Of<kVnniGemm16xM>,
                            .types = "i8 × i8, u4",
                            .block = "M × 16",
                            .when = "M ≤ 12",
                            .order = kS8}),
    EntryOf<kVnniGemm8x8>({.name = "avx512_vnni.gemm_s8_8x8c8",
                           .isa = x86::kAvx512Vnni,
                           .supports = Supports8x8,
                           .is_preferred = Prefers8x8,
                           .types = "i8 × i8, one scale per row",
                           .block = "8 × 8",
                           .when = "5 ≤ M ≤ 8, K ≤ 8192; zen4",
                           .order = kS8}),
    EntryOf<kVnniGemmGemv>(
        {.name = "avx512_vnni.gemm_s8_gemv",
         .isa = x86::kAvx512Vnni,
         .supports = SupportsS8Of<kVnniGemmGemv>,
         .is_preferred = PrefersGemv,
         .types = "i8 × i8, u4",
         .block = "M × 16",
         .when = "M = 1 and K > 1024, or M = 1 and short scale groups, or M ≤ 4, M·K ≤ 16384, K > "
                 "1024 and long scale groups; one DRAM stream",
         .order = kS8}),

    EntryOf<kBf16Gemm>({.name = "avx512_bf16.gemm_bf16",
                        .isa = x86::kAvx512Bf16,
                        .supports = SupportsBf16Bf16<kBf16Gemm>,
                        .is_slow = HasSlowBf16Gemm,
                        .types = "bf16 × bf16",
                        .block = "6 × 4",
                        .when = "not on Intel",
                        .order = kBf16}),
    EntryOf<kBf16GemmSmallM>({.name = "avx512_bf16.gemm_bf16_small_m",
                              .isa = x86::kAvx512Bf16,
                              .supports = SupportsBf16Bf16<kBf16GemmSmallM>,
                              .is_preferred = KeepsAInL1,
                              .is_slow = HasSlowBf16Gemm,
                              .types = "bf16 × bf16",
                              .block = "M × 1",
                              .when = "M ≤ 6, M·K ≤ 12288; not on Intel",
                              .order = kBf16}),
    EntryOf<kBf16Gemm4x6>({.name = "avx512_bf16.gemm_bf16_4x6",
                           .isa = x86::kAvx512Bf16,
                           .supports = SupportsBf16Bf16<kBf16Gemm4x6>,
                           .is_preferred = Prefers4x6,
                           .is_slow = HasSlowBf16Gemm,
                           .types = "bf16 × bf16",
                           .block = "4 × 6",
                           .when = "16 ≤ M ≤ 95; one DRAM stream",
                           .order = kBf16}),
    EntryOf<kBf16Gemm3x8>({.name = "avx512_bf16.gemm_bf16_packed_3x8",
                           .isa = x86::kAvx512Bf16,
                           .supports = SupportsBf16Bf16<kBf16Gemm3x8>,
                           .is_preferred = Prefers3x8,
                           .is_slow = HasSlowBf16Gemm,
                           .types = "bf16 × bf16",
                           .block = "3 × 8",
                           .when = "M ≥ 96; not on Intel",
                           .order = kBf16}),
    EntryOf<kBf16GemmW8>({.name = "avx512_bf16.gemm_bf16_w8",
                          .isa = x86::kAvx512Bf16,
                          .supports = SupportsBf16W8<kBf16GemmW8>,
                          .types = "bf16 × e4m3, i8, u4",
                          .block = "6 × 8",
                          .order = kBf16W8}),
    EntryOf<kBf16GemmW8Gemv>({.name = "avx512_bf16.gemm_bf16_w8_gemv",
                              .isa = x86::kAvx512Bf16,
                              .supports = SupportsBf16W8<kBf16GemmW8Gemv>,
                              .types = "bf16 × e4m3, i8, u4",
                              .block = "1 × 4",
                              .when = "M = 1, K ≤ 12288",
                              .order = kBf16W8}),
    EntryOf<kBf16GemmW8Streams>({.name = "avx512_bf16.gemm_bf16_w8_streams",
                                 .isa = x86::kAvx512Bf16,
                                 .supports = SupportsBf16W8<kBf16GemmW8Streams>,
                                 .is_preferred = ReadsManyStreams,
                                 .types = "bf16 × e4m3, i8, u4",
                                 .block = "M × 8",
                                 .when = "M ≤ 6; many DRAM streams",
                                 .order = kBf16W8}),

    EntryOf<kAmxGemmBf16>({.name = "amx.gemm_bf16",
                           .isa = x86::kAmx,
                           .supports = SupportsAmxOf<kAmxGemmBf16>,
                           .types = "bf16 × bf16, e4m3, i8",
                           .block = "16 × 64",
                           .order = kBf16Amx}),
    EntryOf<kAmxGemmBf16SmallM>({.name = "amx.gemm_bf16_small_m",
                                 .isa = x86::kAmx,
                                 .supports = SupportsAmxOf<kAmxGemmBf16SmallM>,
                                 .types = "bf16 × bf16, e4m3, i8",
                                 .block = "32 × 32",
                                 .when = "M ≤ 32",
                                 .order = kBf16Amx}),
    EntryOf<kAmxGemmFp8Gemv>({.name = "amx.gemm_fp8_gemv",
                              .isa = x86::kAmx,
                              .supports = SupportsFp8Gemv,
                              .types = "bf16 × e4m3",
                              .block = "M × 4",
                              .when = "M ≤ 2",
                              .order = kBf16Amx}),
    EntryOf<kAmxGemmS8>({.name = "amx.gemm_s8",
                         .isa = x86::kAmx,
                         .supports = SupportsS8Of<kAmxGemmS8>,
                         .types = "i8 × i8, u4",
                         .block = "32 × 32",
                         .order = kS8}),
    EntryOf<kAmxGemmS8SmallM>({.name = "amx.gemm_s8_small_m",
                               .isa = x86::kAmx,
                               .supports = SupportsS8Of<kAmxGemmS8SmallM>,
                               .types = "i8 × i8, u4",
                               .block = "32 × 32",
                               .when = "M ≤ 32",
                               .order = kS8}),
    EntryOf<kAmxGemmS8Gemv>({.name = "amx.gemm_s8_gemv",
                             .isa = x86::kAmx,
                             .supports = SupportsS8Of<kAmxGemmS8Gemv>,
                             .is_preferred = PrefersAmxGemv,
                             .types = "i8 × i8, u4",
                             .block = "M × 16",
                             .when = "M ≤ 5, or u4 and M ≤ 8",
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

template <const GemmTKernel& kKernel>
bool SupportsGemmT(const GemmTs& s) {
  return Supports(s) && (kKernel.max_m == 0 || s.m <= kKernel.max_m);
}
bool SupportsW8Vnni(const GemmTs& s) { return SupportsVnni(s) && s.w == DType::kI8; }
bool SupportsW4Vnni(const GemmTs& s) { return SupportsVnni(s) && s.w == DType::kU4; }

template <const GemmTKernel& kCode>
void RunGemmT(const GemmTOp::Params& p, const Exec& exec) {
  GemmT(kCode, p, exec);
}

constexpr Kernel<GemmTOp> kGemmT[] = {
    Reference<GemmTOp>("ref.gemm_t", ref::GemmT),
    {.name = "avx2.gemm_t_f32",
     .isa = x86::kAvx2,
     .supports = SupportsGemmT<kAvx2GemmT>,
     .run = RunGemmT<kAvx2GemmT>,
     .types = "f32, bf16, f16 × any",
     .block = "3 × 32",
     .order = kRows},
    {.name = "avx2.gemm_t_f32_small_m",
     .isa = x86::kAvx2,
     .supports = SupportsGemmT<kAvx2GemmTSmallM>,
     .run = RunGemmT<kAvx2GemmTSmallM>,
     .types = "f32, bf16, f16 × any",
     .block = "M × 8",
     .when = "M ≤ 4",
     .order = kRows},
    {.name = "avx512.gemm_t_f32",
     .isa = x86::kAvx512,
     .supports = SupportsGemmT<kAvx512GemmT>,
     .run = RunGemmT<kAvx512GemmT>,
     .types = "f32, bf16, f16 × any",
     .block = "6 × 64",
     .order = kRows},
    {.name = "avx512.gemm_t_f32_small_m",
     .isa = x86::kAvx512,
     .supports = SupportsGemmT<kAvx512GemmTSmallM>,
     .run = RunGemmT<kAvx512GemmTSmallM>,
     .types = "f32, bf16, f16 × any",
     .block = "M × 64",
     .when = "M ≤ 4",
     .order = kRows},
    {.name = "avx512_vnni.gemm_t_w8",
     .isa = x86::kAvx512Vnni,
     .supports = SupportsW8Vnni,
     .run = RunGemmT<kVnniGemmTW8>,
     .types = "bf16, f16 × i8",
     .block = "M × 64",
     .when = "one scale per row",
     .order = kS16Rows},
    {.name = "avx512_vnni.gemm_t_w4",
     .isa = x86::kAvx512Vnni,
     .supports = SupportsW4Vnni,
     .run = RunGemmT<kVnniGemmTW4>,
     .types = "f32, bf16, f16 × u4",
     .block = "M × 128",
     .when = "scale groups of multiples of 32",
     .order = kS8Rows},
    {.name = "avx512_bf16.gemm_t_fp8",
     .isa = x86::kAvx512Bf16,
     .supports = SupportsFp8Bf16,
     .run = RunGemmT<kBf16GemmTFp8>,
     .types = "bf16 × e4m3",
     .block = "M × 64",
     .when = "scale groups of multiples of 16",
     .order = kBf16Rows},
};

}  // namespace

template <>
std::span<const Kernel<GemmOp>> Kernels<GemmOp>() {
  return kGemm;
}
template <>
std::span<const Kernel<GemmTOp>> Kernels<GemmTOp>() {
  return kGemmT;
}

}  // namespace cpu
}  // namespace latte
