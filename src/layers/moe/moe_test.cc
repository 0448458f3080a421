#include "src/layers/moe/moe.h"

#include <gtest/gtest.h>

#include "src/kernels/machine.h"

namespace latte::moe_test {
namespace {

constexpr int64_t kWidth = 2;  // of x and inside

// Ones of bf16, or codes of one with a scale of one.
Linear Ones(DType dtype) {
  Linear out;
  Tensor weight(dtype, {kWidth, kWidth});
  if (dtype == DType::kI8) {
    std::fill_n(weight.Ptr<int8_t>(), kWidth * kWidth, int8_t{1});
    Tensor scale(DType::kF32, {kWidth, 1});
    std::fill_n(scale.Ptr<float>(), kWidth, 1.0f);
    out.matrix.scale = out.matrix.Own(std::move(scale));
    out.matrix.block_rows = 1;
    out.matrix.block_columns = kWidth;
  } else {
    std::fill_n(weight.Ptr<uint16_t>(), kWidth * kWidth, uint16_t{0x3f80});
  }
  out.matrix.weight = out.matrix.Own(std::move(weight));
  return out;
}

// Checkpoints may leave single matrices unquantised: each takes activations in its own form, also
// when experts of either kind are touched together.
TEST(Moe, ExpertsWhoseDownProjectionsDifferGiveWhatEachGivesAlone) {
  Workspace workspace;
  ThreadPool threads(2);
  const Machine machine = *Machine::Detect();
  StepContext step;
  step.arithmetic = DType::kBF16;
  step.int8_activations = true;
  step.workspace = &workspace;
  step.exec = {&threads, &machine};

  MoeLayer moe;
  moe.dims.experts = 2;
  moe.dims.chosen = 1;
  moe.dims.width = kWidth;
  moe.dims.normalize = true;                // the only one weighs 1
  Tensor router(DType::kF32, {2, kWidth});  // token i goes to expert i
  const float rows[] = {1, -1, -1, 1};
  std::copy_n(rows, 4, router.Ptr<float>());
  moe.router.matrix.weight = router;
  for (const DType down : {DType::kI8, DType::kBF16})
    moe.experts.push_back({Ones(DType::kBF16), Ones(DType::kBF16), Ones(down)});
  Tabulate(moe);

  Tensor x(DType::kF32, {2, kWidth});
  const float tokens[] = {3, 1, 1, 2.5f};
  std::copy_n(tokens, 4, x.Ptr<float>());
  Tensor together(DType::kF32, {2, kWidth}), alone(DType::kF32, {2, kWidth});
  Forward(moe, x, together, step);
  for (int64_t i = 0; i < 2; ++i)
    Forward(moe.experts[static_cast<size_t>(i)], x.view().Slice(0, i, i + 1),
            alone.view().Slice(0, i, i + 1), step);
  for (int64_t i = 0; i < 2 * kWidth; ++i) {
    EXPECT_EQ(together.Ptr<float>()[i], alone.Ptr<float>()[i]);
    EXPECT_GT(alone.Ptr<float>()[i], 20);  // 2 · silu(4) · 4, 2 · silu(3.5) · 3.5
  }
}

}  // namespace
}  // namespace latte::moe_test
