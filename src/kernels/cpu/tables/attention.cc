// The kernels of mla_decode, index_topk and mha, by rising instruction set; within one, the general
// kernel first. Select (registry.h) takes the last one that fits.
#include "src/kernels/backends.h"
#include "src/kernels/cpu/tables/table.h"

namespace latte {
namespace cpu {
namespace {

using Decodes = MlaDecodeOp::Shape;
using Mhas = MhaOp::Shape;

bool IsF8Cache(const Decodes& s) {
  return s.kind == CacheFormat::kF8 || s.kind == CacheFormat::kF8Dense;
}
bool SupportsBf16Decode(const Decodes& s) {
  return Supports(s) && (s.cache == DType::kBF16 || IsF8Cache(s) || s.kind == CacheFormat::kQ6);
}
bool SupportsS8Decode(const Decodes& s) {
  return Supports(s) && s.kind == CacheFormat::kI8 && s.r <= kMaxS8Rope;
}
bool SupportsSmallH(const Decodes& s) {
  return Supports(s) && IsF8Cache(s) && s.page_tokens % 16 == 0;
}
// Tiles read 16 keys of a page in place; s8 tiles also need whole tiles of columns.
bool SupportsAmxDecode(const Decodes& s) {
  return SupportsBf16Decode(s) && s.page_tokens % 16 == 0;
}
bool SupportsAmxS8Decode(const Decodes& s) {
  return SupportsS8Decode(s) && s.page_tokens % 16 == 0 && s.c % 64 == 0 && s.r % 64 == 0;
}

// H ≤ 3 over e4m3 rows: f32 arithmetic is faster than preparing keys for tiles or for bf16 pairs.
bool PrefersSmallH(const Decodes& s, Uarch) {
  constexpr int64_t kMaxH = 3;
  return s.h <= kMaxH && SupportsSmallH(s);
}
// q6 rows are rounded to bf16 first, which pays off from H = 8 on.
bool PrefersAmxDecode(const Decodes& s, Uarch uarch) {
  constexpr int64_t kMinQ6H = 8;
  return !PrefersSmallH(s, uarch) && (s.kind != CacheFormat::kQ6 || s.h >= kMinQ6H);
}

bool SupportsBf16Mha(const Mhas& s) { return Supports(s) && s.arithmetic == DType::kBF16; }

// Intel cores run vdpbf16ps slower than f32 multiply-adds; see gemm.cc.
template <class Shape>
bool HasSlowBf16Dot(const Shape&, Uarch uarch) {
  return uarch == Uarch::kIntelBf16;
}

template <const MlaDecodeKernel& kKernel>
void RunDecode(const MlaDecodeOp::Params& p, const Exec& exec) {
  MlaDecode(kKernel, p, exec);
}
template <const IndexTopKKernel& kKernel>
void RunIndexTopK(const IndexTopKOp::Params& p, const Exec& exec) {
  IndexTopK(kKernel, p, exec);
}
template <const MhaKernel& kKernel>
void RunMha(const MhaOp::Params& p, const Exec& exec) {
  Mha(kKernel, p, exec);
}

constexpr Kernel<MlaDecodeOp> kMlaDecode[] = {
    Reference<MlaDecodeOp>("ref.mla_decode", ref::MlaDecode),
    {.name = "avx2.mla_decode",
     .isa = x86::kAvx2,
     .supports = Supports,
     .run = RunDecode<kAvx2Decode>,
     .types = "f32 × any",
     .order = "f32x8"},
    {.name = "avx512.mla_decode",
     .isa = x86::kAvx512,
     .supports = Supports,
     .run = RunDecode<kAvx512Decode>,
     .types = "f32 × any",
     .order = "f32x16"},
    {.name = "avx512_vnni.mla_decode",
     .isa = x86::kAvx512Vnni,
     .supports = SupportsS8Decode,
     .run = RunDecode<kVnniDecode>,
     .types = "s16 × i8",
     .order = "s16"},
    {.name = "avx512_bf16.mla_decode_bf16",
     .isa = x86::kAvx512Bf16,
     .supports = SupportsBf16Decode,
     .run = RunDecode<kBf16Decode>,
     .is_slow = HasSlowBf16Dot,
     .types = "bf16 × bf16, f8, q6",
     .when = "not on Intel",
     .order = "bf16"},
    {.name = "avx512_bf16.mla_decode_small_h",
     .isa = x86::kAvx512Bf16,
     .supports = SupportsSmallH,
     .run = RunDecode<kBf16DecodeSmallH>,
     .is_preferred = PrefersSmallH,
     .types = "bf16 × f8",
     .when = "H ≤ 3",
     .order = "bf16 small H"},
    {.name = "amx.mla_decode_bf16",
     .isa = x86::kAmx,
     .supports = SupportsAmxDecode,
     .run = RunDecode<kAmxDecodeBf16>,
     .is_preferred = PrefersAmxDecode,
     .types = "bf16 × bf16, f8, q6",
     .when = "f8: H ≥ 4; q6: H ≥ 8",
     .order = "bf16 tiles"},
    {.name = "amx.mla_decode_s8",
     .isa = x86::kAmx,
     .supports = SupportsAmxS8Decode,
     .run = RunDecode<kAmxDecodeS8>,
     .types = "s8 + s8 × i8",
     .order = "s8 tiles"},
};

constexpr Kernel<IndexTopKOp> kIndexTopK[] = {
    Reference<IndexTopKOp>("ref.index_topk", ref::IndexTopK),
    {.name = "avx2.index_topk",
     .isa = x86::kAvx2,
     .supports = Supports,
     .run = RunIndexTopK<kAvx2IndexTopK>,
     .types = "f32 × any",
     .order = "f32 chain"},
    {.name = "avx512.index_topk",
     .isa = x86::kAvx512,
     .supports = Supports,
     .run = RunIndexTopK<kAvx512IndexTopK>,
     .types = "f32 × any",
     .order = "f32 chain"},
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
    {.name = "avx2.mha",
     .isa = x86::kAvx2,
     .supports = Supports,
     .run = RunMha<kAvx2Mha>,
     .types = "f32 × f32",
     .order = "f32x8"},
    {.name = "avx512.mha",
     .isa = x86::kAvx512,
     .supports = Supports,
     .run = RunMha<kAvx512Mha>,
     .types = "f32 × f32",
     .order = "f32x16"},
    {.name = "avx512_bf16.mha",
     .isa = x86::kAvx512Bf16,
     .supports = SupportsBf16Mha,
     .run = RunMha<kBf16Mha>,
     .is_slow = HasSlowBf16Dot,
     .types = "bf16 × bf16",
     .when = "not on Intel",
     .order = "bf16"},
    {.name = "amx.mha",
     .isa = x86::kAmx,
     .supports = SupportsBf16Mha,
     .run = RunMha<kAmxMha>,
     .types = "bf16 × bf16",
     .order = "bf16 tiles"},
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
