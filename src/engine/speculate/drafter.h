// Drafters guess the tokens after the last one of a sequence; the next step computes them along with
// it and keeps those that the model would have sampled (docs/speculation.md). No answer depends on a
// drafter, only the number of steps that it takes.
#pragma once

#include <cstdint>
#include <span>

#include "src/engine/request/request_state.h"
#include "src/engine/schedule/scheduler.h"
#include "src/tensor/tensor.h"

namespace latte {

// A sequence whose last token is to be computed.
struct DraftJob {
  Output* output = nullptr;
  int64_t count = 0;  // drafts that are wanted, for which pages are reserved; may be 0
};

// Engine-thread only. The calls of a step come in this order, those about one output in the order of
// its tokens.
class Drafter {
 public:
  Drafter() = default;
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;
  virtual ~Drafter() = default;

  // Before the step is planned: fills Sequence::drafts with up to `count` tokens.
  virtual void Propose(std::span<const DraftJob> jobs) = 0;

  // (plan, h): the step was computed, nothing is sampled yet. h [T, D] holds its hidden states, in the
  // order of the plan.
  virtual void Computed(const StepPlan&, const TensorView&) {}

  // (output, row): a draft was right; row [1, D] of the step's hidden states belongs to it.
  virtual void Accepted(Output&, const TensorView&) {}

  // The output ends, its pages are released next.
  virtual void Leave(Output&) {}
};

}  // namespace latte
