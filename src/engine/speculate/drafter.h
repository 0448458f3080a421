// Drafters guess the tokens after the last one of a sequence; the next step computes them along
// with it and keeps those that the model would have sampled (docs/speculation.md). No answer
// depends on a drafter, only the number of steps that it takes.
#pragma once

#include <cstdint>
#include <span>

#include "src/engine/request/request_state.h"
#include "src/engine/schedule/scheduler.h"
#include "src/engine/step/step.h"

namespace latte {

// A sequence whose last token is to be computed.
struct DraftJob {
  Output* output = nullptr;
  int64_t count = 0;  // drafts that are wanted, for which pages are reserved; may be 0
};

// Engine-thread only. The calls of a step come in this order, those about one output in the order
// of its tokens.
class Drafter {
 public:
  Drafter() = default;
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;
  virtual ~Drafter() = default;

  // Before the step is planned: fills Sequence::drafts with up to `count` tokens.
  virtual void Propose(std::span<const DraftJob> jobs) = 0;

  // (plan, step): the step is planned; says which of its hidden states are to be kept.
  virtual void Keep(const StepPlan&, Step&) {}

  // Whether Computed will run steps of the model.
  virtual bool WritesAfter(const StepPlan&) const { return false; }

  // (plan, may_run): the step was computed, nothing is sampled yet. may_run: what WritesAfter said;
  // without it, no step of the model may be run.
  virtual void Computed(const StepPlan&, bool) {}

  // (output): a copy of another one, made to answer the same prompt.
  virtual void Forked(Output&) {}

  // (output, row): a draft was right; row of the step's hidden states belongs to it.
  virtual void Accepted(Output&, int64_t) {}

  // The output ends, its pages are released next.
  virtual void Leave(Output&) {}

  // All tokens of the step are sampled; outputs that have ended are still there.
  virtual void EndStep() {}
};

}  // namespace latte
