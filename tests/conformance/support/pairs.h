// Pairwise testing: a small set of parameter combinations that covers every pair of values of any
// two parameters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace latte {

// One index for each parameter.
using Combination = std::vector<size_t>;

// The pairs of values that are already covered.
class Pairs {
 public:
  // counts[i]: the number of values of parameter i.
  explicit Pairs(const std::vector<size_t>& counts) {
    for (const size_t count : counts) {
      first_.push_back(values_);
      values_ += count;
    }
    met_.resize(values_ * values_);
  }

  // The number of pairs that this combination would newly cover.
  size_t CountNew(const Combination& c) const {
    size_t count = 0;
    ForEach(c, [&](size_t at) { count += met_[at] ? 0 : 1; });
    return count;
  }
  void Add(const Combination& c) {
    ForEach(c, [&](size_t at) { met_[at] = true; });
  }

 private:
  template <class F>
  void ForEach(const Combination& c, const F& f) const {
    for (size_t i = 0; i < c.size(); ++i)
      for (size_t j = i + 1; j < c.size(); ++j) f((first_[i] + c[i]) * values_ + first_[j] + c[j]);
  }

  std::vector<size_t> first_;
  size_t values_ = 0;
  std::vector<bool> met_;
};

// The next combination in counting order; false after the last one.
inline bool Next(Combination& c, const std::vector<size_t>& counts) {
  for (size_t i = c.size(); i-- > 0;) {
    if (++c[i] < counts[i]) return true;
    c[i] = 0;
  }
  return false;
}

// Greedily takes the allowed combination that covers the most new pairs until none adds any. Pairs
// that occur in no allowed combination are left out. Deterministic.
inline std::vector<Combination> CoverPairs(const std::vector<size_t>& counts,
                                           const std::function<bool(const Combination&)>& allowed) {
  std::vector<Combination> candidates;
  Combination c(counts.size());
  do {
    if (allowed(c)) candidates.push_back(c);
  } while (Next(c, counts));
  Pairs pairs(counts);
  std::vector<Combination> out;
  for (;;) {
    size_t most = 0;
    const Combination* best = nullptr;
    for (const Combination& candidate : candidates) {
      const size_t count = pairs.CountNew(candidate);
      if (count > most) best = &candidate;
      most = std::max(most, count);
    }
    if (best == nullptr) return out;
    pairs.Add(*best);
    out.push_back(*best);
  }
}

// The number of pairs covered by the cases, and the total number.
inline size_t CountPairs(const std::vector<size_t>& counts, const std::vector<Combination>& cases) {
  Pairs pairs(counts);
  size_t count = 0;
  for (const Combination& c : cases) {
    count += pairs.CountNew(c);
    pairs.Add(c);
  }
  return count;
}

inline size_t AllPairs(const std::vector<size_t>& counts) {
  size_t count = 0;
  for (size_t i = 0; i < counts.size(); ++i)
    for (size_t j = i + 1; j < counts.size(); ++j) count += counts[i] * counts[j];
  return count;
}

}  // namespace latte
