// Ops and kernels. A kernel is an entry of a table, not a class: an implementation of one op on one
// instruction set.
//
// An op is a struct with three members: Shape (sizes and dtypes, known before anything runs),
// Params (tensors and scalars; kernels/params/*.h) and `static Shape ShapeOf(const Params&)`.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "src/base/thread_pool.h"
#include "src/kernels/machine.h"
#include "src/kernels/op_work.h"
#include "src/tensor/device.h"

namespace latte {

// Time and work of all calls of an op.
struct OpUse {
  double seconds = 0;
  OpWork work;
};

// Measurements by the name of the op.
using OpTimes = std::map<std::string_view, OpUse>;

class Selections;

// The resources of a kernel besides its arguments; passed, never global.
struct Exec {
  ThreadPool* threads = nullptr;
  const Machine* machine = nullptr;
  OpTimes* times = nullptr;          // null: not measured
  Selections* selections = nullptr;  // of this step; null: every call selects
  DeviceStream stream = nullptr;     // of the device that the machine is; null: its default
  bool only_selects = false;         // kernels are selected and not run: a check of what is missing
};

class Clause;  // a condition as text: rule_text.h

// A rule of selection: whether it holds for a shape on a micro-architecture, and its text. Both
// come from one expression (RuleOf in rule_text.h).
template <class Op>
struct KernelRule {
  bool (*holds)(const typename Op::Shape&, Uarch) = nullptr;
  Clause (*text)() = nullptr;

  explicit operator bool() const { return holds != nullptr; }
  bool operator()(const typename Op::Shape& s, Uarch uarch) const { return holds(s, uarch); }
};

template <class Op>
struct Kernel {
  std::string_view name;  // "avx512_vnni.gemm_s8_gemv": for listings, logs and LATTE_KERNEL
  Isa isa = {};           // required instruction set
  // Whether it can run the shape. Cheap, defined for every shape, no side effects.
  bool (*supports)(const typename Op::Shape&) = nullptr;
  // Requires: supports(shape). Allocates only scratch of the threads and lists of problems, and
  // throws only std::bad_alloc.
  // The result does not depend on the number of threads.
  void (*run)(const typename Op::Params&, const Exec&) = nullptr;
  // Whether the kernels of the same instruction set before it in the table are slower. Empty:
  // always.
  KernelRule<Op> is_preferred = {};
  // Whether a kernel of a smaller instruction set is faster. Empty: never.
  KernelRule<Op> is_slow = {};
  // The order of its sums. Kernels of one op with one order give the same bits. Select chooses by M
  // only among kernels with one order, so a row's result does not depend on the other rows.
  // Empty: exact, or the order of the reference.
  std::string_view order = "";

  // For listings (kernel_text.h).
  std::string_view arithmetic = "";  // of attention: the type of queries and weights: "s16"
  std::string (*tile)() = nullptr;   // of gemm and gemm_t: sides of a tile of C
  Clause (*limits)() = nullptr;      // the limits of sizes in `supports`
  std::string_view remark = "";
};

}  // namespace latte
