// The masks of a step's tokens. An answer with a late mask skips steps while the others continue.
// When the mask is ready, its last token is computed again, with the same logits.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "src/engine/grammar/mask_worker.h"
#include "src/engine/request/request_state.h"
#include "src/engine/schedule/scheduler.h"

namespace latte {

// Engine-thread only.
class StepMasks {
 public:
  using Requests = std::map<RequestId, std::unique_ptr<RequestState>>;

  StepMasks(int64_t vocab, MaskWorker::Now now, std::function<void()> on_late)
      : worker_(vocab, std::move(now), std::move(on_late)) {}

  // Before a step is planned: answers whose masks are ready take part again, and masks of slow
  // answers begin. Returns the outputs that have to end.
  std::vector<std::pair<Output*, Error>> Prepare(const Requests& requests);
  // The masks of what the plan samples begin.
  void Start(const StepPlan& plan);
  // The plan has been computed. Steps whose masks are late sample nothing.
  void Wait(StepPlan& plan);
  // The step's tokens of this output are sampled.
  static void Sampled(Output& output);

  MaskWorker::Counters counters() const { return worker_.counters(); }

 private:
  MaskWorker worker_;
};

}  // namespace latte
