// The work of an op: FLOPs and bytes that measured times are compared with.
#pragma once

#include <cstdint>

namespace latte {

// The minimal work of one call, whatever the kernel. An op that defines it has `static OpWork
// WorkOf(const Params&)`, and kWorkReadsOperands if numbers in operands decide it.
struct OpWork {
  int64_t flops = 0;
  int64_t bytes = 0;  // weights and cached rows, each read once, without activations
};

}  // namespace latte
