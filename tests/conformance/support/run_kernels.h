// Runs kernels one by one and counts the runs.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "src/kernels/cpu/targets.h"
#include "src/kernels/params/gemm.h"
#include "src/kernels/params/mla.h"
#include "src/kernels/params/moe.h"
#include "src/kernels/params/sampling.h"
#include "src/kernels/registry.h"
#include "tests/conformance/support/gpu.h"
#include "tests/record/record_outputs.h"

namespace latte {

// The number of runs of each kernel in this process.
inline std::map<std::string, int>& KernelRuns() {
  static std::map<std::string, int> runs;
  return runs;
}

inline const Machine& TestMachine() {
  static const Machine machine = *Machine::Detect();
  return machine;
}

inline ThreadPool& TestPool(int threads) {
  static ThreadPool pools[] = {ThreadPool(1), ThreadPool(2), ThreadPool(3)};
  return pools[threads - 1];
}

// This machine, with a kernel forced.
template <class Op>
Machine MachineFor(const Kernel<Op>& kernel) {
  Machine machine = TestMachine();
  machine.forced_kernels = {std::string(kernel.name)};
  return machine;
}

// Ops of sampling run on the host.
template <class Op>
constexpr bool kRunsOnGpu = requires(typename Op::Params p, testing_support::OperandLists lists) {
  testing_support::VisitOperands(p, lists, [](const auto&) {});
};

template <class Op>
void RunKernel(const Kernel<Op>& kernel, const typename Op::Params& params, ThreadPool& threads,
               const Machine& machine) {
  if constexpr (kRunsOnGpu<Op>)
    if (kernel.isa.family == IsaFamily::kCuda) return RunOnGpu(kernel, params, threads);
  kernel.run(params, Exec{&threads, &machine});
}

// Whether kernels of `isa` run in this process: of a GPU and the reference, where there is a GPU;
// else of this processor.
inline bool TestsRun(Isa isa) {
  if (TestGpu() == nullptr) return TestMachine().Has(isa);
  return isa == Isa::kRef || TestGpu()->Has(isa);
}

template <class Op>
void RunKernel(const Kernel<Op>& kernel, const typename Op::Params& params, int threads = 1) {
  EXPECT_TRUE(kernel.supports(Op::ShapeOf(params)));
  ++KernelRuns()[std::string(kernel.name)];
  const Machine machine = MachineFor(kernel);
  RunKernel(kernel, params, TestPool(threads), machine);
  RecordOutputs<Op>(kernel.name, "detected", params);
}

// Runs as on a processor of another micro-architecture with the same instructions.
template <class Op>
void RunKernelAs(Uarch uarch, const Kernel<Op>& kernel, const typename Op::Params& params,
                 int threads = 1) {
  Machine machine = MachineFor(kernel);
  machine.uarch = uarch;
  RunKernel(kernel, params, TestPool(threads), machine);
  RecordOutputs<Op>(kernel.name, Name(uarch), params);
}

// Runs what is selected on a processor of another micro-architecture, among the kernels with the
// order of `kernel`: by the size of the call, it may be another kernel.
template <class Op>
void RunPeerAs(Uarch uarch, const Kernel<Op>& kernel, const typename Op::Params& params,
               int threads = 1) {
  Machine machine = TestMachine();
  machine.uarch = uarch;
  const Kernel<Op>& peer = SelectPeer<Op>(kernel, Op::ShapeOf(params), machine);
  ++KernelRuns()[std::string(peer.name)];
  RunKernel(peer, params, TestPool(threads), machine);
}

inline void RunPart(const Kernel<GemmOp>& kernel, const GemmProblem& part, int threads = 1) {
  RunKernel<GemmOp>(kernel, {{&part, 1}}, threads);
}
inline void RunPartAs(Uarch uarch, const Kernel<GemmOp>& kernel, const GemmProblem& part,
                      int threads = 1) {
  RunKernelAs<GemmOp>(uarch, kernel, {{&part, 1}}, threads);
}
// Whether a kernel supports every problem alone.
inline bool SupportsAll(const Kernel<GemmOp>& kernel, std::span<const GemmProblem> parts) {
  return std::ranges::all_of(
      parts, [&](const GemmProblem& p) { return kernel.supports(GemmOp::ShapeOf(p)); });
}
inline void RunPartPeerAs(Uarch uarch, const Kernel<GemmOp>& kernel, const GemmProblem& part,
                          int threads = 1) {
  RunPeerAs<GemmOp>(uarch, kernel, {{&part, 1}}, threads);
}
inline void RunRefPart(const GemmProblem& part) { RunPart(Kernels<GemmOp>().front(), part, 2); }

// The numbers of threads that a kernel is run with, and the micro-architectures that it is run as.
// Neither means anything to a GPU.
template <class Op>
std::span<const int> ThreadCounts(const Kernel<Op>& kernel) {
  static constexpr int kCounts[] = {1, 2, 3};
  return std::span(kCounts).first(kernel.isa.family == IsaFamily::kCuda ? 1 : 3);
}
template <class Op>
std::span<const Uarch> UarchsOf(const Kernel<Op>& kernel) {
  return std::span(kAllUarchs).first(kernel.isa.family == IsaFamily::kCuda ? 0 : kAllUarchs.size());
}

// The reference kernel of an op.
template <class Op>
void RunRef(const typename Op::Params& params) {
  RunKernel(Kernels<Op>().front(), params, 2);
}

// Every kernel that the machine supports, the reference first.
template <class Op, class F>
void ForEachKernel(const F& f) {
  for (const Kernel<Op>& kernel : Kernels<Op>()) {
    if (!TestsRun(kernel.isa)) continue;
    SCOPED_TRACE(kernel.name);
    f(kernel);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Every kernel that supports machine and shape.
template <class Op, class F>
void ForEachKernelFor(const typename Op::Shape& shape, const F& f) {
  ForEachKernel<Op>([&](const Kernel<Op>& kernel) {
    if (kernel.supports(shape)) f(kernel);
  });
}

// Every kernel that supports machine and shape, except the reference.
template <class Op, class F>
void ForEachFastKernel(const typename Op::Shape& shape, const F& f) {
  ForEachKernel<Op>([&](const Kernel<Op>& kernel) {
    if (kernel.isa != Isa::kRef && kernel.supports(shape)) f(kernel);
  });
}

}  // namespace latte
