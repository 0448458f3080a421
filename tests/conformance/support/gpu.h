// Kernels of a GPU on operands of the host: LATTE_CUDA_DRIVER names the driver; without it no such
// kernel runs.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "src/kernels/op.h"
#include "src/tensor/cuda/driver_abi.h"
#include "tests/support/step/operands.h"

namespace latte {

// The GPU of this process; null without LATTE_CUDA_DRIVER.
const Machine* TestGpu();

// Whether that GPU is the emulator, which computes about a million products a second.
bool GpuIsEmulated();

// Operands of the host, copied to the GPU, each stretch of memory once.
class GpuOperands {
 public:
  ~GpuOperands();

  // Notes memory that will be copied.
  void Add(const void* at, int64_t bytes);
  // Copies everything that was noted to the GPU.
  void CopyIn();
  // Where memory that was noted lies on the GPU; other addresses stay, and no kernel can read
  // there.
  std::byte* On(const void* at) const;
  // Copies everything back.
  void CopyOut() const;

 private:
  struct Stretch {
    const std::byte* host;
    int64_t bytes;
    cuda::abi::Ptr gpu;
  };
  static std::byte* OnGpu(const Stretch& s) { return reinterpret_cast<std::byte*>(s.gpu); }
  std::vector<Stretch> stretches_;
};

// Sequences with their pages, as a step holds them.
struct PlacedSequences {
  explicit PlacedSequences(std::span<const SequenceChunk> sequences);

  std::vector<int32_t> pages;
  std::vector<StepChunk> placed;
  std::vector<SequenceChunk> sequences;
};

// The operands of an op up to the last element that it may touch: tests give an op more keys than
// there are in memory, where no query sees them.
template <class Params>
Params Touched(Params p) {
  return p;
}
inline MhaOp::Params Touched(MhaOp::Params p) {
  const int64_t keys = p.k_nope.shape[0];
  const int64_t seen = std::clamp<int64_t>(p.q_begin + p.q_nope.shape[0] - p.key_begin, 0, keys);
  for (TensorView* t : {&p.k_nope, &p.k_rope, &p.v}) *t = t->Slice(0, 0, seen);
  return p;
}

// Runs a kernel of the GPU.
template <class Op>
void RunOnGpu(const Kernel<Op>& kernel, typename Op::Params p, ThreadPool& threads) {
  testing_support::OperandLists lists;
  GpuOperands operands;
  std::optional<PlacedSequences> step;
  if constexpr (requires { p.sequences; }) p.sequences = step.emplace(p.sequences).sequences;
  auto touched = Touched(p);
  testing_support::VisitOperands(touched, lists, [&](const auto& operand) {
    operands.Add(testing_support::AddressOf(operand), testing_support::BytesOf(operand));
  });
  operands.CopyIn();
  // Empty ones too: where the first sequence has its pages, the list of all pages begins.
  const auto place = [&]<class T>(T& operand) {
    if constexpr (std::is_same_v<T, TensorView>)
      operand.data = operands.On(operand.data);
    else
      operand =
          T(reinterpret_cast<typename T::pointer>(operands.On(operand.data())), operand.size());
  };
  testing_support::VisitOperands(p, lists, place);
  kernel.run(p, Exec{.threads = &threads, .machine = TestGpu()});
  operands.CopyOut();
}

}  // namespace latte
