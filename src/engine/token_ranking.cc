#include "src/engine/token_ranking.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>

namespace latte {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
// Candidates that are looked at first: one per block of the row, within these limits.
constexpr size_t kFewestHead = 32;
constexpr size_t kMostHead = 256;

// A bucket has the logits that agree in sign, exponent and three bits of the mantissa.
constexpr int kBucketShift = 20;
constexpr size_t kBuckets = size_t{1} << (32 - kBucketShift);

// Keys are ordered as the numbers are, −0 counting as 0.
uint32_t KeyOf(float z) {
  const auto bits = std::bit_cast<uint32_t>(z + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

float OfKey(uint32_t key) {
  return std::bit_cast<float>((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}

// The `count`-th largest of the blocks' maxima: at least `count` logits reach it, and the `count`
// likeliest all do. −inf if there are fewer blocks.
float Threshold(const LogitScan& scan, size_t count) {
  if (count == 0 || count > scan.block_max.size()) return kMinusInf;
  std::vector<float> maxima = scan.block_max;
  const auto at = maxima.begin() + static_cast<int64_t>(count) - 1;
  std::nth_element(maxima.begin(), at, maxima.end(), std::greater<>());
  return *at;
}

// All tokens with low <= logit < high, −inf left out.
std::vector<Candidate> Between(std::span<const float> logits, const LogitScan& scan, float low,
                               float high) {
  std::vector<Candidate> out;
  low = std::max(low, std::numeric_limits<float>::lowest());
  for (size_t block = 0; block < scan.block_max.size(); ++block) {
    if (!(scan.block_max[block] >= low)) continue;
    const size_t first = block * kLogitBlock;
    const size_t count = std::min(kLogitBlock, logits.size() - first);
    const float* z = &logits[first];
    std::array<uint8_t, kLogitBlock> found;
    size_t size = 0;
    for (size_t i = 0; i < count; ++i) {  // no branch: which logits are in is not predictable
      found[size] = static_cast<uint8_t>(i);
      size += z[i] >= low && z[i] < high ? 1 : 0;
    }
    for (size_t i = 0; i < size; ++i)
      out.push_back({z[found[i]], static_cast<int32_t>(first + found[i]), 0});
  }
  return out;
}

uint64_t WeightOf(std::span<const Candidate> candidates) {
  uint64_t sum = 0;
  for (const Candidate& c : candidates) sum += c.weight;
  return sum;
}

}  // namespace

void FillWeights(std::span<Candidate> candidates, const WeightScale& scale) {
  std::vector<float> logits(candidates.size());
  std::vector<uint64_t> weights(candidates.size());
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = candidates[i].logit;
  ComputeWeights(logits, scale, weights);
  for (size_t i = 0; i < logits.size(); ++i) candidates[i].weight = weights[i];
}

std::vector<Candidate> LikeliestTokens(std::span<const float> logits, const LogitScan& scan,
                                       size_t count) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<Candidate> out = Between(logits, scan, Threshold(scan, count), kInf);
  if (out.size() <= count) return out;
  std::nth_element(out.begin(), out.begin() + static_cast<int64_t>(count), out.end(), Likelier);
  out.resize(count);
  return out;
}

Reached ReachAmong(std::span<Candidate> candidates, uint64_t wanted) {
  constexpr size_t kFew = 32;
  uint64_t before = 0;
  while (candidates.size() > kFew) {
    const size_t half = candidates.size() / 2;
    std::nth_element(candidates.begin(), candidates.begin() + static_cast<int64_t>(half),
                     candidates.end(), Likelier);
    const uint64_t sum = WeightOf(candidates.first(half));
    const bool inside = before + sum >= wanted;
    if (!inside) before += sum;
    candidates = inside ? candidates.first(half) : candidates.subspan(half);
  }
  std::sort(candidates.begin(), candidates.end(), Likelier);
  Reached out{0, before};
  for (const Candidate& c : candidates) {
    out = {c.id, out.sum + c.weight};
    if (out.sum >= wanted) break;
  }
  return out;
}

TokenRanking::TokenRanking(std::span<const float> logits, const LogitScan& scan,
                           const WeightScale& scale)
    : logits_(logits),
      scan_(scan),
      scale_(scale),
      total_(SumWeights(logits, scan, scale)),
      head_(LikeliestTokens(logits, scan,
                            std::clamp(scan.block_max.size(), kFewestHead, kMostHead))) {
  FillWeights(head_, scale_);
  head_sum_ = WeightOf(head_);
}

Reached TokenRanking::Reach(uint64_t wanted) {
  return wanted <= head_sum_ ? ReachAmong(head_, wanted) : ReachInRow(wanted);
}

Reached TokenRanking::ReachInRow(uint64_t wanted) {
  if (buckets_.empty()) CountBuckets();
  uint64_t before = 0;
  size_t bucket = kBuckets - 1;
  while (bucket > 0 && before + buckets_[bucket] < wanted) before += buckets_[bucket--];
  const auto key = static_cast<uint32_t>(bucket << kBucketShift);
  std::vector<Candidate> members =
      Between(logits_, scan_, OfKey(key), OfKey(key + (1u << kBucketShift)));
  FillWeights(members, scale_);
  const Reached found = ReachAmong(members, wanted - before);
  return {found.id, before + found.sum};
}

void TokenRanking::CountBuckets() {
  buckets_.resize(kBuckets);
  std::array<uint64_t, kLogitBlock> weights;
  for (size_t first = 0; first < logits_.size(); first += kLogitBlock) {
    const auto block = logits_.subspan(first, std::min(kLogitBlock, logits_.size() - first));
    ComputeWeights(block, scale_, std::span(weights).first(block.size()));
    for (size_t i = 0; i < block.size(); ++i)
      buckets_[KeyOf(block[i]) >> kBucketShift] += weights[i];
  }
}

}  // namespace latte
