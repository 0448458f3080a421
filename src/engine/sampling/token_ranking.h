// The most probable tokens, in order, for sampling. Thresholds find them without sorting the
// vocabulary.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/engine/sampling/token_weights.h"

namespace latte {

struct Candidate {
  float logit = 0;
  int32_t id = 0;
  uint64_t weight = 0;
};

// The order of the ranking: likelier first, equal ones by id.
inline bool Likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// The `count` likeliest tokens that are possible at all (not −inf), in no order, without weights.
std::vector<Candidate> LikeliestTokens(const ScannedRow& row, size_t count);

// Sets the weights of candidates, with the same arithmetic as the weights of a row.
void FillWeights(std::span<Candidate> candidates, const WeightScale& scale, const Machine& machine);

// Where weights, summed up in the order of the ranking, reach a wanted sum.
struct Reached {
  int32_t id = 0;
  uint64_t sum = 0;  // of the weights up to this token and with it
};

// Requires: 1 <= wanted <= the sum of the candidates' weights. Moves them. Cost: linear.
Reached ReachAmong(std::span<Candidate> candidates, uint64_t wanted);

// A row's tokens with their weights. Thread-compatible; what it is made of must outlive it.
class TokenRanking {
 public:
  // share: roughly which part of the total Reach will get; affects speed only.
  // Requires: no NaN in the row; scale.max is its largest logit, finite.
  TokenRanking(const ScannedRow& row, const WeightScale& scale, double share);

  uint64_t total() const { return total_; }

  // Requires: 1 <= wanted <= total(). Cost: that of a few hundred candidates where they suffice,
  // else of a look over the row.
  Reached Reach(uint64_t wanted);

 private:
  Reached ReachInRow(uint64_t wanted);

  const ScannedRow& row_;
  WeightScale scale_;
  uint64_t total_ = 0;
  std::vector<Candidate> head_;  // the likeliest tokens; none where they would hardly suffice
  uint64_t head_sum_ = 0;
  BucketGrid grid_;
  std::vector<uint64_t> buckets_;  // weights; empty until needed
};

}  // namespace latte
