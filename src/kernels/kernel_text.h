// What listings say of a kernel. All of it comes from the code that selects and runs the kernel.
#pragma once

#include <string>
#include <string_view>

#include "src/kernels/op.h"
#include "src/kernels/ops.h"

namespace latte {

// The types that the kernel multiplies, found by asking `supports`: "bf16 × f8_e4m3, i8"; of
// attention its arithmetic and the caches that it reads: "bf16 × bf16, fp8". "any": all types of
// weights or caches. Empty for other ops and for the reference.
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
