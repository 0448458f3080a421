// Ops and kernels. A kernel is an entry of a table, not a class: one way to compute one op on one
// instruction set.
//
// An op is a struct with three members: Shape (sizes and dtypes, known before anything runs),
// Params (tensors and scalars; kernels/params/*.h) and `static Shape ShapeOf(const Params&)`.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "src/base/thread_pool.h"
#include "src/kernels/machine.h"
#include "src/kernels/op_work.h"

namespace latte {

// Time and work of all calls of an op.
struct OpUse {
  double seconds = 0;
  OpWork work;
};

// Measurements by the name of the op.
using OpTimes = std::map<std::string_view, OpUse>;

// The resources of a kernel besides its arguments; passed, never global.
struct Exec {
  ThreadPool* threads = nullptr;
  const Machine* machine = nullptr;
  OpTimes* times = nullptr;  // null: not measured
};

template <class Op>
struct Kernel {
  std::string_view name;  // "avx512.gemm": for listings, logs, benchmarks and LATTE_KERNEL
  Isa isa;                // required instruction set
  bool (*supports)(const typename Op::Shape&);  // cheap, defined for every shape, no side effects
  // Requires: supports(shape). Allocates only scratch of the threads, and throws only OutOfMemory.
  // The result does not depend on the number of threads.
  void (*run)(const typename Op::Params&, const Exec&);
  // Whether the kernel before it in the table is faster there for this shape. Null: never.
  bool (*is_slow)(const typename Op::Shape&, Uarch) = nullptr;
};

}  // namespace latte
