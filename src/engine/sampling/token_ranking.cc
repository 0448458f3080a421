#include "src/engine/sampling/token_ranking.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>

namespace latte {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
// Candidates that are looked at first: one per block of the row, within these limits.
constexpr size_t kFewestHead = 32;
constexpr size_t kMostHead = 256;

// Tokens, equally spaced by id, that tell roughly how the row lies.
constexpr size_t kSampled = 256;

// The `count`-th largest of the blocks' maxima: at least `count` logits reach it, and the `count`
// likeliest all do. −inf if there are fewer blocks.
float Threshold(const ScannedRow& row, size_t count) {
  if (count == 0 || count > row.block_max.size()) return kMinusInf;
  std::vector<float> maxima = row.block_max;
  const auto at = maxima.begin() + static_cast<int64_t>(count) - 1;
  std::nth_element(maxima.begin(), at, maxima.end(), std::greater<>());
  return *at;
}

// All tokens with low <= logit, −inf left out.
std::vector<Candidate> AtLeast(const ScannedRow& row, float low) {
  std::vector<Candidate> out;
  low = std::max(low, std::numeric_limits<float>::lowest());
  for (size_t block = 0; block < row.block_max.size(); ++block) {
    if (!(row.block_max[block] >= low)) continue;
    const size_t first = block * kLogitBlock;
    const size_t count = std::min(kLogitBlock, row.logits.size() - first);
    const float* z = &row.logits[first];
    std::array<uint8_t, kLogitBlock> found;
    size_t size = 0;
    for (size_t i = 0; i < count; ++i) {  // no branch: which logits are in is not predictable
      found[size] = static_cast<uint8_t>(i);
      size += z[i] >= low ? 1 : 0;
    }
    for (size_t i = 0; i < size; ++i)
      out.push_back({z[found[i]], static_cast<int32_t>(first + found[i]), 0});
  }
  return out;
}

// Equally spaced logits, and how many of the row each stands for.
struct RowSample {
  explicit RowSample(std::span<const float> row)
      : every(std::max<size_t>(1, row.size() / kSampled)) {
    for (size_t i = 0; i + every <= row.size(); i += every) logits.push_back(row[i]);
  }
  size_t every;
  std::vector<float> logits;
};

double WeightOf(std::span<const float> logits, const WeightScale& scale, const Machine& machine) {
  const std::vector<uint64_t> weights = ComputeWeights(logits, scale, machine);
  return std::accumulate(weights.begin(), weights.end(), 0.0);
}

// Whether the likeliest tokens have about that share of the row's weight: as far as the blocks'
// largest and the sample tell.
bool HeadSuffices(const ScannedRow& row, const RowSample& sample, const WeightScale& scale,
                  double share) {
  const double head = WeightOf(row.block_max, scale, *row.machine);
  const double rest =
      static_cast<double>(sample.every) * WeightOf(sample.logits, scale, *row.machine);
  return head >= share * (head + rest);
}

// From the largest logit to the least of the sample, or to where weights end if that is nearer.
BucketGrid GridOf(const RowSample& sample, const WeightScale& scale) {
  const double max = static_cast<double>(scale.max);
  double least = max;
  for (const float z : sample.logits)
    if (z > kMinusInf) least = std::min(least, static_cast<double>(z));
  const double weightless = static_cast<double>(scale.cut) / static_cast<double>(scale.scale);
  constexpr double kNarrowest = 1e-30;  // keeps the quotient finite
  const double range = std::max(kNarrowest, std::min(max - least, -weightless));
  return {scale.max, static_cast<float>((kBuckets - 1) / range)};
}

uint64_t WeightOf(std::span<const Candidate> candidates) {
  uint64_t sum = 0;
  for (const Candidate& c : candidates) sum += c.weight;
  return sum;
}

}  // namespace

void FillWeights(std::span<Candidate> candidates, const WeightScale& scale,
                 const Machine& machine) {
  std::vector<float> logits(candidates.size());
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = candidates[i].logit;
  const std::vector<uint64_t> weights = ComputeWeights(logits, scale, machine);
  for (size_t i = 0; i < logits.size(); ++i) candidates[i].weight = weights[i];
}

std::vector<Candidate> LikeliestTokens(const ScannedRow& row, size_t count) {
  std::vector<Candidate> out = AtLeast(row, Threshold(row, count));
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

TokenRanking::TokenRanking(const ScannedRow& row, const WeightScale& scale, double share)
    : row_(row), scale_(scale) {
  const RowSample sample(row.logits);
  grid_ = GridOf(sample, scale);
  if (HeadSuffices(row, sample, scale, share)) {
    total_ = SumWeights(row_, scale_);
    head_ = LikeliestTokens(row, std::clamp(row.block_max.size(), kFewestHead, kMostHead));
    FillWeights(head_, scale_, *row_.machine);
    head_sum_ = WeightOf(head_);
  } else {
    buckets_ = CountBuckets(row_, scale_, grid_);
    total_ = std::accumulate(buckets_.begin(), buckets_.end(), uint64_t{0});
  }
}

Reached TokenRanking::Reach(uint64_t wanted) {
  return wanted <= head_sum_ ? ReachAmong(head_, wanted) : ReachInRow(wanted);
}

Reached TokenRanking::ReachInRow(uint64_t wanted) {
  if (buckets_.empty()) buckets_ = CountBuckets(row_, scale_, grid_);
  uint64_t before = 0;
  size_t bucket = 0;
  while (bucket + 1 < buckets_.size() && before + buckets_[bucket] < wanted)
    before += buckets_[bucket++];
  std::vector<Candidate> members;
  for (const int32_t id : BucketMembers(row_, grid_, static_cast<int32_t>(bucket)))
    members.push_back({row_.logits[static_cast<size_t>(id)], id, 0});
  FillWeights(members, scale_, *row_.machine);
  const Reached found = ReachAmong(members, wanted - before);
  return {found.id, before + found.sum};
}

}  // namespace latte
