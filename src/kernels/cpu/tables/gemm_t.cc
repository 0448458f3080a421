// The kernels of gemm_t, by rising instruction set; within one, the general kernel first.
#include "src/kernels/backends.h"
#include "src/kernels/cpu/tables/table.h"
#include "src/kernels/rule_text.h"

namespace latte {
namespace cpu {
namespace {

using GemmTs = GemmTOp::Shape;

// Orders of sums along N; the headers of the kernels define them.
constexpr std::string_view kRows = "rows in order", kBf16Rows = "pairs of rows",
                           kS16Rows = "s16 rows", kS8Rows = "s8 rows";

// The types that kernels multiply, among the shapes that all of them support.
bool TakesBf16Fp8(const GemmTs& s) { return s.x == DType::kBF16 && IsF8(s.w); }
// f32 x has more bits than the fixed point of the kernel.
bool TakesI8(const GemmTs& s) { return s.x != DType::kF32 && s.w == DType::kI8; }
bool TakesU4(const GemmTs& s) { return s.w == DType::kU4 && s.scale_group > 0; }

constexpr auto kFp8Sizes = [](const auto& s) {
  return IsMultiple(s.k, 64) && IsMultiple(s.scale_group, 16) &&
         (s.scale_rows == 0 || s.scale_rows >= 16);
};
constexpr auto kI8Sizes = [](const auto& s) { return IsMultiple(s.k, 64) && s.scale_group == s.k; };
constexpr auto kU4Sizes = [](const auto& s) {
  return IsMultiple(s.k, 128) && IsMultiple(s.scale_group, 32);
};

// Shape: GemmTOp::Shape or its names.
template <class Shape>
auto WithinMaxM(const GemmTKernel& kernel, const Shape& s) {
  using Holds = decltype(s.m <= kernel.max_m);
  return kernel.max_m == 0 ? Holds(true) : s.m <= kernel.max_m;
}

template <const GemmTKernel& kCode, bool (*kTakes)(const GemmTs&), auto kLimits = kAnySize>
constexpr Kernel<GemmTOp> GemmTEntryOf(std::string_view name, Isa isa, std::string_view order) {
  return {.name = name,
          .isa = isa,
          .supports =
              [](const GemmTs& s) {
                return Supports(s) && kTakes(s) && kLimits(s) && WithinMaxM(kCode, s);
              },
          .run = [](const GemmTOp::Params& p, const Exec& exec) { GemmT(kCode, p, exec); },
          .order = order,
          .tile = TileText<kCode>,
          .limits =
              [] {
                const ShapeNames<GemmTOp> s;
                return kLimits(s) && WithinMaxM(kCode, s);
              }};
}

constexpr Kernel<GemmTOp> kGemmT[] = {
    Reference<GemmTOp>("ref.gemm_t", ref::GemmT),
    GemmTEntryOf<kAvx2GemmT, Always<GemmTOp>>("avx2.gemm_t_f32", x86::kAvx2, kRows),
    GemmTEntryOf<kAvx2GemmTSmallM, Always<GemmTOp>>("avx2.gemm_t_f32_small_m", x86::kAvx2, kRows),
    GemmTEntryOf<kAvx512GemmT, Always<GemmTOp>>("avx512.gemm_t_f32", x86::kAvx512, kRows),
    GemmTEntryOf<kAvx512GemmTSmallM, Always<GemmTOp>>("avx512.gemm_t_f32_small_m", x86::kAvx512,
                                                      kRows),
    GemmTEntryOf<kVnniGemmTW8, TakesI8, kI8Sizes>("avx512_vnni.gemm_t_w8", x86::kAvx512Vnni,
                                                  kS16Rows),
    GemmTEntryOf<kVnniGemmTW4, TakesU4, kU4Sizes>("avx512_vnni.gemm_t_w4", x86::kAvx512Vnni,
                                                  kS8Rows),
    GemmTEntryOf<kBf16GemmTFp8, TakesBf16Fp8, kFp8Sizes>("avx512_bf16.gemm_t_fp8", x86::kAvx512Bf16,
                                                         kBf16Rows),
};

}  // namespace

template <>
std::span<const Kernel<GemmTOp>> Kernels<GemmTOp>() {
  return kGemmT;
}

}  // namespace cpu
}  // namespace latte
