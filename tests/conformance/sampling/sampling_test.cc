// Ops over rows of logits: kernels and reference give the same bits, and the reference follows the
// definition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/random.h"
#include "tests/conformance/support/guarded.h"
#include "tests/conformance/support/run_kernels.h"

namespace latte::sampling_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int kKinds = 4;
constexpr size_t kLengths[] = {1, 63, 64, 65, 127, 128, 700, 21 * 64, 64 * 64 + 5};

std::span<float> Floats(const Guarded& t) {
  return {t.view().Row<float>(0), static_cast<size_t>(t.view().shape[1])};
}

// Flat, of all sizes, with impossible tokens.
void FillLogits(int kind, Random& random, std::span<float> z) {
  for (float& one : z) {
    const double u = static_cast<double>(random.Below(1 << 24)) * 0x1p-23 - 1;
    one = static_cast<float>(kind == 0 ? u : 60 * u);
    if (kind == 2)
      one = static_cast<float>(std::ldexp(u, static_cast<int>(random.Below(250)) - 130));
    if (kind == 3 && random.Below(3) == 0) one = -kInf;
  }
  if (*std::max_element(z.begin(), z.end()) == -kInf) z[0] = 1;
}

// The outputs of all ops.
struct Outputs {
  explicit Outputs(size_t n)
      : block_max(LogitBlocks(n)), weights(n), buckets(kBuckets, 7), found(LogitBlocks(n)) {}
  bool operator==(const Outputs&) const = default;

  bool has_nan = true;
  std::vector<float> block_max;
  uint64_t sum = 0;
  std::vector<uint64_t> weights;
  std::vector<uint64_t> buckets;  // begun at 7: the op adds
  std::vector<uint8_t> found;
};

struct SamplingCase {
  std::span<const float> logits;
  std::span<const float> block_max;  // between guard pages
  WeightScale scale;
  BucketGrid grid;
  int32_t bucket;
};

// Runs kernel `index` of every op; the lists have the same instruction sets.
Outputs RunKernels(size_t index, const SamplingCase& c) {
  Outputs out(c.logits.size());
  RunKernel(Kernels<LogitMaxOp>()[index], {c.logits, out.block_max, &out.has_nan});
  RunKernel(Kernels<TokenWeightSumOp>()[index], {c.logits, c.block_max, c.scale, &out.sum});
  RunKernel(Kernels<TokenWeightsOp>()[index], {c.logits, c.scale, out.weights});
  RunKernel(Kernels<TokenHistogramOp>()[index],
            {c.logits, c.block_max, c.scale, c.grid, out.buckets});
  RunKernel(Kernels<FindBucketOp>()[index], {c.logits, c.grid, c.bucket, out.found});
  return out;
}

int32_t RandomBucket(Random& random) {
  return static_cast<int32_t>(random.Below(static_cast<uint64_t>(kBuckets)));
}

void ExpectBitsOfReference(int kind, size_t length, Random& random) {
  const Guarded logits(DType::kF32, {1, static_cast<int64_t>(length)});
  const Guarded block_max(DType::kF32, {1, static_cast<int64_t>(LogitBlocks(length))});
  FillLogits(kind, random, Floats(logits));
  bool has_nan = false;
  RunRef<LogitMaxOp>({Floats(logits), Floats(block_max), &has_nan});
  const float max = *std::max_element(Floats(logits).begin(), Floats(logits).end());
  const double temperature = random.Below(3) == 0 ? 0.6 : 1.7;
  const SamplingCase c{Floats(logits),
                       Floats(block_max),
                       WeightScale::Of(max, temperature, random.Below(5) == 0 ? 0.01 : 0),
                       {max, random.Below(2) == 0 ? 30.0f : 900.0f},
                       // Often the last bucket, which padding with −inf would be in.
                       random.Below(4) == 0 ? kBuckets - 1 : RandomBucket(random)};
  const Outputs want = RunKernels(0, c);
  const auto kernels = Kernels<LogitMaxOp>();
  for (size_t i = 1; i < kernels.size(); ++i) {
    if (!TestMachine().Has(kernels[i].isa)) continue;
    SCOPED_TRACE(kernels[i].name);
    ASSERT_TRUE(RunKernels(i, c) == want);
  }
}

TEST(SamplingConformance, EveryKernelGivesTheBitsOfTheReference) {
  Random random(11);
  for (const size_t length : kLengths)
    for (int i = 0; i < 40; ++i) {
      SCOPED_TRACE(testing::Message() << length << " " << i);
      ExpectBitsOfReference(i % kKinds, length, random);
      if (HasFatalFailure()) return;
    }
}

TEST(SamplingConformance, SumsOfLongRowsOfTheLargestWeightsFit) {
  constexpr size_t kMany = 64000;
  const std::vector<float> z(kMany, 2.0f);
  const std::vector<float> block_max(LogitBlocks(kMany), 2.0f);
  ForEachKernel<TokenWeightSumOp>([&](const Kernel<TokenWeightSumOp>& kernel) {
    uint64_t sum = 0;
    RunKernel(kernel, {z, block_max, WeightScale::Of(2.0f, 1, 0), &sum});
    EXPECT_EQ(sum, kMany * kWeightOne);
  });
}

TEST(SamplingConformance, ANanIsSeenWhereverItIs) {
  for (size_t at = 0; at < 2 * kLogitBlock + 3; ++at) {
    std::vector<float> z(2 * kLogitBlock + 3);
    z[at] = std::nanf("");
    std::vector<float> block_max(LogitBlocks(z.size()));
    ForEachKernel<LogitMaxOp>([&](const Kernel<LogitMaxOp>& kernel) {
      bool has_nan = false;
      RunKernel(kernel, {z, block_max, &has_nan});
      EXPECT_TRUE(has_nan) << at;
    });
  }
}

// 2^40 · e^((z − max) / temperature), to the accuracy that params/sampling.h promises.
TEST(SamplingConformance, WeightsAreThoseOfTheDefinition) {
  std::vector<float> z;
  for (float one = 0; one > -30; one -= 0.37f) z.push_back(one);
  std::vector<uint64_t> weights(z.size());
  RunRef<TokenWeightsOp>({z, WeightScale::Of(0, 1.25, 0), weights});
  EXPECT_EQ(weights[0], kWeightOne);
  for (size_t i = 0; i < z.size(); ++i) {
    const double exact = std::exp2(40) * std::exp(static_cast<double>(z[i]) / 1.25);
    EXPECT_NEAR(static_cast<double>(weights[i]), exact, 4e-6 * exact + 1) << i;
  }
  RunRef<TokenWeightsOp>({z, WeightScale::Of(0, 1.25, 0.5), weights});
  for (size_t i = 0; i < z.size(); ++i)
    EXPECT_EQ(weights[i] > 0, std::exp(static_cast<double>(z[i]) / 1.25) >= 0.5) << i;
}

TEST(SamplingConformance, BucketsAreEqualStepsBelowTheLargest) {
  const std::vector<float> z = {4.0f, 3.76f, 3.74f, -1e30f, -kInf};
  const BucketGrid grid{4.0f, 4.0f};  // steps of 0.25
  std::vector<uint64_t> buckets(kBuckets);
  const std::vector<float> block_max = {4.0f};
  RunRef<TokenHistogramOp>({z, block_max, WeightScale::Of(4.0f, 1, 0), grid, buckets});
  EXPECT_GT(buckets[0], kWeightOne);
  EXPECT_GT(buckets[1], kWeightOne / 2);
  EXPECT_EQ(buckets[kBuckets - 1], 0u);
  std::vector<uint8_t> found(1);
  for (const auto& [bucket, want] : {std::pair{1, 1}, {2, 0}, {kBuckets - 1, 1}}) {
    RunRef<FindBucketOp>({z, grid, bucket, found});
    EXPECT_EQ(found[0], want) << bucket;
  }
}

}  // namespace
}  // namespace latte::sampling_test
