#include "src/engine/speculate/draft_policy.h"

#include <algorithm>

namespace latte {
namespace {

constexpr double kStepWeight = 0.97;    // of a step, relative to the one after it
constexpr double kRate = 1.0 / 32;      // of acceptance towards the last draft, when many are known
constexpr int64_t kExpected = 4;        // drafts that the expectation counts for
constexpr double kProbeRate = 1.0 / 4;  // the same for drafts that are tried again
constexpr int kProbes = 4;
constexpr int64_t kLongestPause = 1024;
// A step or draft that takes this many times what is expected was interrupted, and counts as that.
constexpr double kMostOfExpected = 3;
constexpr int64_t kFewSteps = 8;     // know nothing of what is expected
constexpr int64_t kPlainEvery = 64;  // steps: one without drafts shows what they cost

void Approach(double& value, double target, double rate) { value += rate * (target - value); }

}  // namespace

int64_t DraftPolicy::Worthwhile(const DraftRecord& record) const {
  double right = 1;
  int64_t count = 0;
  for (; count < most_; ++count) {
    right *= record.accepted[static_cast<size_t>(count)];
    if (right * step_seconds_ < sequences_ * (row_seconds_ + draft_seconds_)) break;
  }
  return count;
}

int64_t DraftPolicy::Count(DraftRecord& record, int64_t generated) const {
  if (!adapts_) return most_;
  if (steps_ % kPlainEvery == kPlainEvery / 8) return 0;
  const int64_t count = Worthwhile(record);
  if (record.probes == 0 && generated >= record.next_probe) record.probes = kProbes;
  return std::min(most_, count + (record.probes > 0 ? 1 : 0));
}

void DraftPolicy::Record(DraftRecord& record, int64_t generated, int64_t drafted,
                         int64_t accepted) const {
  const int64_t before = Worthwhile(record);
  for (int64_t j = 0; j < std::min(drafted, accepted + 1); ++j) {
    const auto at = static_cast<size_t>(j);
    const double mean_rate = 1.0 / static_cast<double>(kExpected + ++record.known[at]);
    Approach(record.accepted[at], j < accepted ? 1 : 0,
             std::max(mean_rate, j < before ? kRate : kProbeRate));
  }
  if (record.probes == 0 || drafted <= before) return;
  --record.probes;
  const bool pays = Worthwhile(record) > before;
  if (pays) record.probes = 0;
  if (record.probes > 0) return;
  record.pause = pays ? DraftRecord().pause : std::min(2 * record.pause, kLongestPause);
  record.next_probe = generated + record.pause;
}

void DraftPolicy::StepTook(double seconds, int64_t rows, int64_t sequences) {
  ++steps_;
  const auto r = static_cast<double>(rows);
  const double expected = step_seconds_ + row_seconds_ * (r - sequences_);
  if (steps_ > kFewSteps) seconds = std::min(seconds, kMostOfExpected * expected);
  Approach(sequences_, static_cast<double>(sequences), steps_ == 1 ? 1 : 1 - kStepWeight);
  for (double* sum : {&weight_, &rows_, &rows2_, &seconds_, &product_}) *sum *= kStepWeight;
  weight_ += 1;
  rows_ += r;
  rows2_ += r * r;
  seconds_ += seconds;
  product_ += r * seconds;
  const double mean_rows = rows_ / weight_;
  const double mean_seconds = seconds_ / weight_;
  const double variance = rows2_ / weight_ - mean_rows * mean_rows;
  constexpr double kLeastVariance = 0.01;
  if (variance > kLeastVariance)
    row_seconds_ = std::max(0.0, (product_ / weight_ - mean_rows * mean_seconds) / variance);
  step_seconds_ = std::max(0.0, mean_seconds + row_seconds_ * (sequences_ - mean_rows));
}

void DraftPolicy::DraftsTook(double seconds, int64_t count) {
  if (count == 0) return;
  double each = seconds / static_cast<double>(count);
  if (steps_ > kFewSteps && draft_seconds_ > 0)
    each = std::min(each, kMostOfExpected * draft_seconds_);
  Approach(draft_seconds_, each, draft_seconds_ == 0 ? 1 : kRate);
}

}  // namespace latte
