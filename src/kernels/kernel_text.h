// The texts of a kernel in listings. They come from the functions and constants that select and run
// the kernel, except `arithmetic` and `remark` of its entry.
#pragma once

#include <string>
#include <string_view>

#include "src/kernels/op.h"
#include "src/kernels/ops.h"

namespace latte {

// Explains the letters in the texts.
inline constexpr std::string_view kKernelTextLegend =
    "A × B: activations × weights; M: rows of A; N, K: rows and columns of B\n"
    "G, Gx: columns of B and of A with one scale; S: rows of B with one scale\n"
    "H: heads; C, R, V: widths of latent, rope part and value; P: tokens of a page\n";

// The types that the kernel multiplies, which `supports` tells: "bf16 × f8_e4m3, i8". Attention
// has its arithmetic and the caches that it reads: "bf16 × bf16, fp8". "any" are all types of
// weights or caches. The text is empty for other ops and for the reference.
std::string TypesText(const Kernel<GemmOp>& kernel);
std::string TypesText(const Kernel<GemmTOp>& kernel);
std::string TypesText(const Kernel<MlaDecodeOp>& kernel);
std::string TypesText(const Kernel<IndexTopKOp>& kernel);
std::string TypesText(const Kernel<MhaOp>& kernel);
template <class Op>
std::string TypesText(const Kernel<Op>&) {
  return "";
}

// The limits of sizes and the rules of selection, "M ≤ 6 and many DRAM streams", and the remark.
std::string WhenText(Clause (*limits)(), Clause (*is_preferred)(), Clause (*is_slow)(),
                     std::string_view remark);
template <class Op>
std::string WhenText(const Kernel<Op>& kernel) {
  return WhenText(kernel.limits, kernel.is_preferred.text, kernel.is_slow.text, kernel.remark);
}

}  // namespace latte
