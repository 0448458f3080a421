// Counters and histograms that are cheap to update. On one thread only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include "src/serve/observe/buckets.h"

namespace latte {

// A histogram whose samples are collected here until the text is made: a sample costs neither a
// lock nor a list.
class Distribution {
 public:
  Distribution(prometheus::Histogram& histogram, Bounds bounds)
      : histogram_(histogram), bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  void Add(double value, double times = 1) {
    if (std::isnan(value)) return;
    value = std::max(value, 0.0);
    const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<size_t>(at)] += times;
    sum_ += value * times;
    changed_ = true;
  }

  void Flush() {
    if (!std::exchange(changed_, false)) return;
    histogram_.ObserveMultiple(counts_, std::exchange(sum_, 0));
    std::fill(counts_.begin(), counts_.end(), 0);
  }

 private:
  prometheus::Histogram& histogram_;
  Bounds bounds_;
  std::vector<double> counts_;
  double sum_ = 0;
  bool changed_ = false;
};

// A counter that follows a number which another part counts.
class Follower {
 public:
  explicit Follower(prometheus::Counter& counter) : counter_(counter) {}
  // Returns by how much it went up.
  double Reach(double value) {
    const double more = value - seen_;
    if (!(more > 0)) return 0;
    counter_.Increment(more);
    seen_ = value;
    return more;
  }
  double Reach(int64_t value) { return Reach(static_cast<double>(value)); }

 private:
  prometheus::Counter& counter_;
  double seen_ = 0;
};

}  // namespace latte
