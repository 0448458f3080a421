// A kernel is a row, not a class: one way to do one op on one kind of hardware.
//
// An op is a struct with three members: Shape (what the host knows before anything runs: sizes and
// dtypes), Params (Shape's meaning with tensors attached; kernels/params/*.h) and `static Shape
// ShapeOf(const Params&)`.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "src/base/thread_pool.h"
#include "src/kernels/machine.h"
#include "src/kernels/op_work.h"

namespace latte {

// What the calls of an op took and had to do.
struct OpUse {
  double seconds = 0;
  OpWork work;
};

// By the op's name: what measurements collect.
using OpTimes = std::map<std::string_view, OpUse>;

// What a kernel may use besides its arguments; passed, never global.
struct Exec {
  ThreadPool* threads = nullptr;
  const Machine* machine = nullptr;
  OpTimes* times = nullptr;  // null: not measured
};

template <class Op>
struct Kernel {
  std::string_view name;                        // "avx512.gemm": rows, logs, benches, LATTE_KERNEL
  Isa isa;                                      // what the processor must have
  bool (*supports)(const typename Op::Shape&);  // cheap, total, no side effects
  // Requires: supports(shape). Allocates nothing but scratch of the threads and fails for the lack
  // of that alone (OutOfMemory). The result does not depend on the thread count.
  void (*run)(const typename Op::Params&, const Exec&);
  // Whether AVX-512 dot products of bf16 bind the row, so that the one before it is faster where
  // they are slow (Machine::slow_bf16_dot). Null: never.
  bool (*bound_by_bf16_dot)(const typename Op::Shape&) = nullptr;
};

}  // namespace latte
