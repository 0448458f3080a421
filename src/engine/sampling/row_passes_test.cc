// The passes over rows, as every instruction set of this processor does them, beside plain loops.
#include "src/engine/sampling/row_passes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/engine/sampling/token_weights.h"

namespace latte {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr size_t kBlocks = 21;  // two full runs of the passes, and more

// Flat, of all sizes, with impossible tokens.
std::vector<float> SomeRow(int kind, Random& random) {
  std::vector<float> z(kBlocks * kLogitBlock);
  for (float& one : z) {
    const double u = static_cast<double>(random.Below(1 << 24)) * 0x1p-23 - 1;
    one = static_cast<float>(kind == 0 ? u : 60 * u);
    if (kind == 2)
      one = static_cast<float>(std::ldexp(u, static_cast<int>(random.Below(250)) - 130));
    if (kind == 3 && random.Below(3) == 0) one = -kInf;
  }
  return z;
}

std::vector<Isa> IsasHere() {
  const Machine machine = *Machine::Detect();
  std::vector<Isa> out;
  for (const Isa isa : kAllIsas)
    if (machine.Has(isa)) out.push_back(isa);
  return out;
}

// What all passes tell of a row.
struct Told {
  std::vector<float> block_max = std::vector<float>(kBlocks);
  uint64_t sum = 0;
  std::vector<uint64_t> weights = std::vector<uint64_t>(kBlocks * kLogitBlock);
  std::vector<uint64_t> buckets = std::vector<uint64_t>(kBuckets);
  std::vector<int32_t> at = std::vector<int32_t>(kBlocks * kLogitBlock);
  std::vector<bool> found = std::vector<bool>(kBlocks);
};

int32_t PlainBucket(float z, const BucketGrid& grid) {
  const float steps = (grid.max - z) * grid.per_logit;
  return steps < static_cast<float>(kBuckets - 1) ? static_cast<int32_t>(steps) : kBuckets - 1;
}

// The passes' formula, a logit at a time.
uint64_t PlainWeight(float z, const WeightScale& scale) {
  const float x = (z - scale.max) * scale.scale;
  if (!(x >= scale.cut)) return 0;
  constexpr float kRound = 0x1.8p23f + 147;  // halves go to the odd number
  const float whole = (x + kRound) - kRound;
  const float f = x - whole;
  float y = 0.00111255096f * f + 0.00966628268f;
  for (const float next : {0.0555740036f, 0.240223512f, 0.693142831f, 1.0f}) y = y * f + next;
  return static_cast<uint64_t>(std::ldexp(static_cast<double>(y), static_cast<int>(whole) + 40));
}

Told Plainly(const std::vector<float>& z, const WeightScale& scale, const BucketGrid& grid,
             int32_t bucket) {
  Told out;
  for (size_t i = 0; i < z.size(); ++i) {
    float& max = out.block_max[i / kLogitBlock];
    max = i % kLogitBlock == 0 ? z[i] : std::max(max, z[i]);
    out.weights[i] = PlainWeight(z[i], scale);
    out.sum += out.weights[i];
    out.at[i] = PlainBucket(z[i], grid);
    out.buckets[static_cast<size_t>(out.at[i])] += out.weights[i];
    if (out.at[i] == bucket) out.found[i / kLogitBlock] = true;
  }
  return out;
}

Told ByPasses(const RowPasses& passes, const std::vector<float>& z, const WeightScale& scale,
              const BucketGrid& grid, int32_t bucket) {
  Told out;
  EXPECT_FALSE(passes.scan(z.data(), kBlocks, out.block_max.data()));
  out.sum = passes.sum(z.data(), out.block_max.data(), kBlocks, scale);
  passes.weights(z.data(), kBlocks, scale, out.weights.data());
  passes.count(z.data(), out.block_max.data(), kBlocks, scale, grid, out.buckets.data());
  for (size_t b = 0; b < kBlocks; ++b)
    out.found[b] = passes.find(&z[b * kLogitBlock], grid, bucket, &out.at[b * kLogitBlock]);
  return out;
}

TEST(RowPasses, EveryInstructionSetGivesTheBitsOfPlainLoops) {
  Random random(11);
  for (int i = 0; i < 200; ++i) {
    const std::vector<float> z = SomeRow(i % 4, random);
    const float max = *std::max_element(z.begin(), z.end());
    const double temperature = i % 3 == 0 ? 0.6 : 1.7;
    const WeightScale scale = WeightScale::Of(max, temperature, i % 5 == 0 ? 0.01 : 0);
    const BucketGrid grid{max, i % 2 == 0 ? 30.0f : 900.0f};
    const auto bucket = static_cast<int32_t>(random.Below(static_cast<uint64_t>(kBuckets)));
    const Told plain = Plainly(z, scale, grid, bucket);
    for (const Isa isa : IsasHere()) {
      SCOPED_TRACE(testing::Message() << i << " " << Name(isa));
      const Told told = ByPasses(RowPassesOf(isa), z, scale, grid, bucket);
      EXPECT_EQ(told.block_max, plain.block_max);
      EXPECT_EQ(told.sum, plain.sum);
      EXPECT_EQ(told.weights, plain.weights);
      EXPECT_EQ(told.buckets, plain.buckets);
      EXPECT_EQ(told.at, plain.at);
      EXPECT_EQ(told.found, plain.found);
    }
  }
}

TEST(RowPasses, SumsOfLongRowsOfTheLargestWeightsFit) {
  constexpr size_t kMany = 1000;
  const std::vector<float> z(kMany * kLogitBlock, 2.0f);
  const std::vector<float> block_max(kMany, 2.0f);
  const WeightScale scale = WeightScale::Of(2.0f, 1, 0);
  for (const Isa isa : IsasHere())
    EXPECT_EQ(RowPassesOf(isa).sum(z.data(), block_max.data(), kMany, scale),
              kMany * kLogitBlock * kWeightOne);
}

TEST(RowPasses, ANanIsSeenWhereverItIs) {
  for (const Isa isa : IsasHere())
    for (size_t at = 0; at < 2 * kLogitBlock; ++at) {
      std::array<float, 2 * kLogitBlock> z = {};
      z[at] = std::nanf("");
      std::array<float, 2> block_max;
      EXPECT_TRUE(RowPassesOf(isa).scan(z.data(), 2, block_max.data())) << at;
    }
}

}  // namespace
}  // namespace latte
