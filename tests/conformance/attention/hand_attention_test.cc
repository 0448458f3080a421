// Small cases computed by hand, for every kernel: cache rows, attention, merging.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/support/run_kernels.h"

namespace latte::hand_attention_test {
namespace {

using Floats = std::vector<float>;
constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");
const auto kLn3 = static_cast<float>(std::log(3.0));
const auto kLn4 = static_cast<float>(std::log(4.0));

TensorView View(Floats& values, std::initializer_list<int64_t> dims) {
  return {values.data(), DType::kF32, dims};
}

TEST(Hand, AppendWritesRoundedRowsToTheirSlots) {
  Floats first = {1, 2, 3, 4};
  Floats second = {1.0f + 0x1p-8f, 6};
  const std::vector<int64_t> slots = {3, 0};
  ForEachKernel<AppendOp>([&](const Kernel<AppendOp>& kernel) {
    Floats pages(12, -1);
    RunKernel(kernel, {View(first, {2, 2}), View(second, {2, 1}), View(pages, {2, 2, 3}), slots});
    EXPECT_EQ(pages, (Floats{3, 4, 6, -1, -1, -1, -1, -1, -1, 1, 2, 1.0f + 0x1p-8f}));
    std::vector<uint16_t> rounded(12, 0);
    const TensorView bf16(rounded.data(), DType::kBF16, {2, 2, 3});
    RunKernel(kernel, {View(first, {2, 2}), View(second, {2, 1}), bf16, slots});
    EXPECT_EQ(rounded, (std::vector<uint16_t>{0x4040, 0x4080, 0x40c0, 0, 0, 0, 0, 0, 0, 0x3f80,
                                              0x4000, 0x3f80}));
    const TensorView f16(rounded.data(), DType::kF16, {2, 2, 3});
    RunKernel(kernel, {View(first, {2, 2}), View(second, {2, 1}), f16, slots});
    EXPECT_EQ(rounded, (std::vector<uint16_t>{0x4200, 0x4400, 0x4600, 0, 0, 0, 0, 0, 0, 0x3c00,
                                              0x4000, 0x3c04}));
  });
}

TEST(Hand, GatherPagesFollowsTheTable) {
  Floats pages = {0, 1, 2, 3, 4, 5};  // three pages of two rows of one element
  const std::vector<int32_t> table = {2, 0};
  ForEachKernel<GatherPagesOp>([&](const Kernel<GatherPagesOp>& kernel) {
    Floats y(3);
    RunKernel(kernel, {View(pages, {3, 2, 1}), table, 1, View(y, {3, 1})});
    EXPECT_EQ(y, (Floats{5, 0, 1}));
  });
}

// Keys {0 | 0} and {1 | ln 3}: a query with only a rope part has scores 0 and ln 3.
TEST(Hand, MlaDecodeWeighsKeysOneToThree) {
  Floats pages = {1, kLn3, kNan, kNan, 0, 0, kNan, kNan};  // pages of one row; the second unused
  const std::vector<int32_t> table = {2, 0};
  Floats q_latent = {0, 0, 0, 0};
  Floats q_rope = {1, 1, 2, 0.5f};
  ForEachKernel<MlaDecodeOp>([&](const Kernel<MlaDecodeOp>& kernel) {
    if (!kernel.supports({2, 2, 1, 1, 1, DType::kF32})) return;
    const SequenceChunk sequence = {.count = 2, .pages = table};
    Floats o(4, kNan);
    Floats lse(4, kNan);
    RunKernel(kernel, {View(q_latent, {2, 2, 1}),
                       View(q_rope, {2, 2, 1}),
                       View(pages, {4, 1, 2}),
                       {&sequence, 1},
                       View(o, {2, 2, 1}),
                       View(lse, {2, 2}),
                       1.0f});
    // Token 0 attends only to key 0.
    EXPECT_EQ(o[0], 0.0f);
    EXPECT_EQ(lse[0], 0.0f);
    // Token 1: scores 2·ln 3 and ½·ln 3, weights 9/10 and √3/(1+√3).
    EXPECT_FLOAT_EQ(o[2], 0.9f);
    EXPECT_FLOAT_EQ(lse[2], static_cast<float>(std::log(10.0)));
    EXPECT_FLOAT_EQ(o[3], static_cast<float>(std::sqrt(3.0) / (1 + std::sqrt(3.0))));
  });
}

TEST(Hand, MhaIsCausalByAbsolutePosition) {
  Floats q_nope = {1, 1, 1};
  Floats q_rope = {0, 0, 0};
  Floats k_nope = {0, kLn3};
  Floats k_rope = {7, 7};
  Floats v = {4, 8};
  ForEachKernel<MhaOp>([&](const Kernel<MhaOp>& kernel) {
    if (!kernel.supports({3, 2, 1, 1, 1, 1, DType::kF32})) return;
    Floats o(3, kNan);
    Floats lse(3, kNan);
    // Queries at 9, 10, 11; keys at 10, 11.
    RunKernel(kernel, {View(q_nope, {3, 1, 1}), View(q_rope, {3, 1, 1}), View(k_nope, {2, 1, 1}),
                       View(k_rope, {2, 1, 1}), View(v, {2, 1, 1}), 9, 10, View(o, {3, 1, 1}),
                       View(lse, {3, 1}), 1.0f});
    EXPECT_EQ(o[0], 0.0f);
    EXPECT_EQ(lse[0], -kInf);
    EXPECT_EQ(o[1], 4.0f);
    EXPECT_EQ(lse[1], 0.0f);
    EXPECT_FLOAT_EQ(o[2], 7.0f);  // weights 1/4 and 3/4
    EXPECT_FLOAT_EQ(lse[2], kLn4);
  });
}

// A NaN must not look like a row without keys, whose output is zero.
TEST(Hand, OneScoreThatIsNaN) {
  Floats q = {kNan, 1}, k = {1, 0}, value = {3, 5};
  ForEachKernel<MlaDecodeOp>([&](const Kernel<MlaDecodeOp>& kernel) {
    if (!kernel.supports({2, 1, 1, 1, 1, DType::kF32})) return;
    Floats pages = {3, 1, 5, 0}, q_latent = {0, 0}, o(2), lse(2);
    const std::vector<int32_t> table = {0, 1};
    const SequenceChunk sequence = {.count = 2, .pages = table};
    RunKernel(kernel, {View(q_latent, {2, 1, 1}),
                       View(q, {2, 1, 1}),
                       View(pages, {2, 1, 2}),
                       {&sequence, 1},
                       View(o, {2, 1, 1}),
                       View(lse, {2, 1}),
                       1.0f});
    EXPECT_TRUE(std::isnan(o[0])) << kernel.name << ": " << o[0];
    EXPECT_FALSE(std::isnan(o[1])) << kernel.name;
  });
  ForEachKernel<MhaOp>([&](const Kernel<MhaOp>& kernel) {
    if (!kernel.supports({2, 2, 1, 1, 1, 1, DType::kF32})) return;
    Floats zeros = {0, 0}, o(2), lse(2);
    RunKernel(kernel, {View(q, {2, 1, 1}), View(zeros, {2, 1, 1}), View(k, {2, 1, 1}),
                       View(zeros, {2, 1, 1}), View(value, {2, 1, 1}), 0, 0, View(o, {2, 1, 1}),
                       View(lse, {2, 1}), 1.0f});
    EXPECT_TRUE(std::isnan(o[0])) << kernel.name << ": " << o[0];
    EXPECT_FALSE(std::isnan(o[1])) << kernel.name;
  });
}

TEST(Hand, LseMerge) {
  ForEachKernel<LseMergeOp>([&](const Kernel<LseMergeOp>& kernel) {
    //        equal  1:3   only a     only b     neither     +inf is none
    Floats o = {2, 4, 5, kNan, kNan, 6};
    Floats lse = {1, 0, 2, -kInf, -kInf, 3};
    Floats o_b = {4, 8, kNan, 7, kNan, kNan};
    Floats lse_b = {1, kLn3, -kInf, 5, -kInf, kInf};
    RunKernel(kernel, {View(o, {6, 1}), View(lse, {6}), View(o_b, {6, 1}), View(lse_b, {6})});
    EXPECT_FLOAT_EQ(o[0], 3.0f);
    EXPECT_FLOAT_EQ(lse[0], static_cast<float>(1 + std::log(2.0)));
    EXPECT_FLOAT_EQ(o[1], 7.0f);
    EXPECT_FLOAT_EQ(lse[1], kLn4);
    EXPECT_EQ(o[2], 5.0f);
    EXPECT_EQ(lse[2], 2.0f);
    EXPECT_EQ(o[3], 7.0f);
    EXPECT_EQ(lse[3], 5.0f);
    EXPECT_EQ(o[4], 0.0f);
    EXPECT_EQ(lse[4], -kInf);
    EXPECT_EQ(o[5], 6.0f);
    EXPECT_EQ(lse[5], 3.0f);
  });
}

}  // namespace
}  // namespace latte::hand_attention_test
