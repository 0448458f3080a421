// The number of tokens to draft for a sequence: fixed, or measured. A draft must save more time
// than it takes. Drafts change no answer, so the number may depend on the clock.
//
//   P_j       probability that drafts 1 … j are right: product of the sequence's rates of
//             acceptance
//   saved     P_j · (seconds of a step without drafts) / (its sequences)
//   taken     seconds that a row adds to a step, and that a draft takes to make
//
// A sequence gets the drafts with saved > taken. To correct wrong estimates, it sometimes gets one
// more, and less often after each failure.
#pragma once

#include <array>
#include <cstdint>

#include "src/engine/settings.h"

namespace latte {

// The record of the drafts of one sequence.
struct DraftRecord {
  // Rates at which draft j is right when those before it are: at first means of what is expected
  // and of the drafts, then of late drafts.
  std::array<double, kMostDrafts> accepted = {0.8, 0.7, 0.6, 0.5};
  std::array<int64_t, kMostDrafts> known = {};  // how many drafts j the rates are made from
  int64_t next_probe = 64;                      // when one more is tried, in generated tokens
  int64_t pause = 64;                           // between two such times
  int probes = 0;                               // steps that are left of the one under way
};

// Engine-thread only.
class DraftPolicy {
 public:
  explicit DraftPolicy(const Settings& settings)
      : most_(settings.draft_tokens), adapts_(settings.adapts_drafts) {}

  // Drafts for the next step of a sequence with so many generated tokens.
  int64_t Count(DraftRecord& record, int64_t generated) const;

  // Of `drafted` drafts the first `accepted` were right.
  void Record(DraftRecord& record, int64_t generated, int64_t drafted, int64_t accepted) const;

  // A step of generated tokens alone took `seconds` for `rows` tokens of `sequences` sequences.
  void StepTook(double seconds, int64_t rows, int64_t sequences);
  // `count` drafts were made in `seconds`.
  void DraftsTook(double seconds, int64_t count);

 private:
  int64_t Worthwhile(const DraftRecord& record) const;

  int64_t most_;
  bool adapts_;
  // Sums over the steps, late ones with more weight, for the line seconds = base + row · rows.
  double weight_ = 0, rows_ = 0, rows2_ = 0, seconds_ = 0, product_ = 0;
  double sequences_ = 1;      // of late steps
  double row_seconds_ = 0;    // slope of the line; 0 until rows differ
  double step_seconds_ = 0;   // the line at `sequences_` rows
  double draft_seconds_ = 0;  // of one draft
  int64_t steps_ = 0;
};

}  // namespace latte
