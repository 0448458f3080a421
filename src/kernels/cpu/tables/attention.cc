// The kernels of mla_decode, index_topk and mha, by rising instruction set; within one, the general
// kernel first. Select (registry.h) takes the last one that fits.
#include "src/kernels/backends.h"
#include "src/kernels/cpu/tables/table.h"
#include "src/kernels/rule_text.h"

namespace latte {
namespace cpu {
namespace {

using Decodes = MlaDecodeOp::Shape;
using Mhas = MhaOp::Shape;

// The formats of caches that kernels read, among the shapes that all of them support.
constexpr auto kIsF8 = [](const auto& s) {
  return s.kind == CacheFormat::kF8 || s.kind == CacheFormat::kF8Dense;
};
bool ReadsI8(const Decodes& s) { return s.kind == CacheFormat::kI8; }
bool ReadsF8(const Decodes& s) { return kIsF8(s); }
bool ReadsBf16(const Decodes& s) {
  return s.cache == DType::kBF16 || kIsF8(s) || s.kind == CacheFormat::kQ6;
}

constexpr auto kS8Rope = [](const auto& s) { return s.r <= kMaxS8Rope; };
// 16 keys of a page are read in place.
constexpr auto kPagesOf16 = [](const auto& s) { return IsMultiple(s.page_tokens, 16); };
constexpr auto kWholeS8Tiles = [](const auto& s) {
  return kS8Rope(s) && kPagesOf16(s) && IsMultiple(s.c, 64) && IsMultiple(s.r, 64);
};

// H ≤ 3 over e4m3 rows: f32 arithmetic is faster than preparing keys for tiles or for bf16 pairs.
constexpr int64_t kMaxSmallH = 3;
constexpr auto kPrefersSmallH =
    RuleOf<MlaDecodeOp>([](const auto& s, auto) { return s.h <= kMaxSmallH; });
// q6 rows are rounded to bf16 first, which pays off from H = 8 on.
constexpr auto kPrefersAmxDecode = RuleOf<MlaDecodeOp>([](const auto& s, auto) {
  return !(kIsF8(s) && s.h <= kMaxSmallH) && (s.kind != CacheFormat::kQ6 || s.h >= 8);
});

bool MultipliesBf16(const Mhas& s) { return s.arithmetic == DType::kBF16; }

// Intel cores run vdpbf16ps slower than f32 multiply-adds; see gemm.cc.
template <class Op>
constexpr auto kHasSlowBf16Dot = RuleOf<Op>([](const auto&, auto uarch) {
  return uarch == Uarch::kIntelBf16;
});

// Adds the code and the limits of a kernel to its entry.
template <const MlaDecodeKernel& kCode, bool (*kReads)(const Decodes&), auto kLimits = kAnySize>
constexpr Kernel<MlaDecodeOp> DecodeEntryOf(Kernel<MlaDecodeOp> kernel) {
  kernel.supports = [](const Decodes& s) { return Supports(s) && kReads(s) && kLimits(s); };
  kernel.limits = []() -> Clause { return kLimits(ShapeNames<MlaDecodeOp>()); };
  kernel.run = [](const MlaDecodeOp::Params& p, const Exec& exec) { MlaDecode(kCode, p, exec); };
  return kernel;
}
template <const MhaKernel& kCode, bool (*kTakes)(const Mhas&)>
constexpr Kernel<MhaOp> MhaEntryOf(Kernel<MhaOp> kernel) {
  kernel.supports = [](const Mhas& s) { return Supports(s) && kTakes(s); };
  kernel.run = [](const MhaOp::Params& p, const Exec& exec) { Mha(kCode, p, exec); };
  return kernel;
}

template <const IndexTopKKernel& kKernel>
void RunIndexTopK(const IndexTopKOp::Params& p, const Exec& exec) {
  IndexTopK(kKernel, p, exec);
}

constexpr Kernel<MlaDecodeOp> kMlaDecode[] = {
    Reference<MlaDecodeOp>("ref.mla_decode", ref::MlaDecode),
    DecodeEntryOf<kAvx2Decode, Always<MlaDecodeOp>>(
        {.name = "avx2.mla_decode", .isa = x86::kAvx2, .order = "f32x8", .arithmetic = "f32"}),
    DecodeEntryOf<kAvx512Decode, Always<MlaDecodeOp>>(
        {.name = "avx512.mla_decode", .isa = x86::kAvx512, .order = "f32x16", .arithmetic = "f32"}),
    DecodeEntryOf<kVnniDecode, ReadsI8, kS8Rope>({.name = "avx512_vnni.mla_decode",
                                                  .isa = x86::kAvx512Vnni,
                                                  .order = "s16",
                                                  .arithmetic = "s16"}),
    DecodeEntryOf<kBf16Decode, ReadsBf16>({.name = "avx512_bf16.mla_decode_bf16",
                                           .isa = x86::kAvx512Bf16,
                                           .is_slow = kHasSlowBf16Dot<MlaDecodeOp>,
                                           .order = "bf16",
                                           .arithmetic = "bf16"}),
    DecodeEntryOf<kBf16DecodeSmallH, ReadsF8, kPagesOf16>({.name = "avx512_bf16.mla_decode_small_h",
                                                           .isa = x86::kAvx512Bf16,
                                                           .is_preferred = kPrefersSmallH,
                                                           .order = "bf16 small H",
                                                           .arithmetic = "bf16"}),
    DecodeEntryOf<kAmxDecodeBf16, ReadsBf16, kPagesOf16>({.name = "amx.mla_decode_bf16",
                                                          .isa = x86::kAmx,
                                                          .is_preferred = kPrefersAmxDecode,
                                                          .order = "bf16 tiles",
                                                          .arithmetic = "bf16"}),
    DecodeEntryOf<kAmxDecodeS8, ReadsI8, kWholeS8Tiles>({.name = "amx.mla_decode_s8",
                                                         .isa = x86::kAmx,
                                                         .order = "s8 tiles",
                                                         .arithmetic = "s8 + s8"}),
};

constexpr Kernel<IndexTopKOp> kIndexTopK[] = {
    Reference<IndexTopKOp>("ref.index_topk", ref::IndexTopK),
    {.name = "avx2.index_topk",
     .isa = x86::kAvx2,
     .supports = Supports,
     .run = RunIndexTopK<kAvx2IndexTopK>,
     .order = "f32 chain",
     .arithmetic = "f32"},
    {.name = "avx512.index_topk",
     .isa = x86::kAvx512,
     .supports = Supports,
     .run = RunIndexTopK<kAvx512IndexTopK>,
     .order = "f32 chain",
     .arithmetic = "f32"},
};

template <const MlaDecodeKernel& kKernel>
void RunMergeSplits(const MergeSplitsOp::Params& p, const Exec& exec) {
  MergeSplits(kKernel, p, exec);
}

// All kernels of mla_decode for an instruction set merge alike.
constexpr Kernel<MergeSplitsOp> kMergeSplits[] = {
    Reference<MergeSplitsOp>("ref.merge_splits", ref::MergeSplits),
    {.name = "avx2.merge_splits",
     .isa = x86::kAvx2,
     .supports = Always<MergeSplitsOp>,
     .run = RunMergeSplits<kAvx2Decode>,
     .order = "f32x8"},
    {.name = "avx512.merge_splits",
     .isa = x86::kAvx512,
     .supports = Always<MergeSplitsOp>,
     .run = RunMergeSplits<kAvx512Decode>,
     .order = "f32x16"},
};

constexpr Kernel<MhaOp> kMha[] = {
    Reference<MhaOp>("ref.mha", ref::Mha),
    MhaEntryOf<kAvx2Mha, Always<MhaOp>>(
        {.name = "avx2.mha", .isa = x86::kAvx2, .order = "f32x8", .arithmetic = "f32"}),
    MhaEntryOf<kAvx512Mha, Always<MhaOp>>(
        {.name = "avx512.mha", .isa = x86::kAvx512, .order = "f32x16", .arithmetic = "f32"}),
    MhaEntryOf<kBf16Mha, MultipliesBf16>({.name = "avx512_bf16.mha",
                                          .isa = x86::kAvx512Bf16,
                                          .is_slow = kHasSlowBf16Dot<MhaOp>,
                                          .order = "bf16",
                                          .arithmetic = "bf16"}),
    MhaEntryOf<kAmxMha, MultipliesBf16>(
        {.name = "amx.mha", .isa = x86::kAmx, .order = "bf16 tiles", .arithmetic = "bf16"}),
};

}  // namespace

template <>
std::span<const Kernel<MlaDecodeOp>> Kernels<MlaDecodeOp>() {
  return kMlaDecode;
}
template <>
std::span<const Kernel<MergeSplitsOp>> Kernels<MergeSplitsOp>() {
  return kMergeSplits;
}
template <>
std::span<const Kernel<IndexTopKOp>> Kernels<IndexTopKOp>() {
  return kIndexTopK;
}
template <>
std::span<const Kernel<MhaOp>> Kernels<MhaOp>() {
  return kMha;
}

}  // namespace cpu
}  // namespace latte
