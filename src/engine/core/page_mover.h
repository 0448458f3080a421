// Carries out what the cache manager decides: copies between pages, pages to disk and back.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "src/cache/cache_manager.h"
#include "src/engine/prefix_disk/prefix_store.h"
#include "src/engine/schedule/scheduler.h"
#include "src/engine/step/runner.h"

namespace latte {

// Engine-thread only. The runner must outlive it.
class PageMover {
 public:
  // `store` may be null: nothing is saved or loaded.
  PageMover(Runner& runner, std::unique_ptr<PrefixStore> store)
      : runner_(runner), store_(std::move(store)), moves_(MovesCapacity(runner.capacity())) {}

  // Adds the copies to `step`, which has no tokens yet; saves take a copy of the page now and
  // continue during the step.
  void AddPageOps(std::span<const PageOp> ops, Step& step);

  // Writes a page to disk during the steps to come, unless it is there. False: the store's queue is
  // full.
  bool Save(int32_t page, PagePrefix prefix);

  // Starts to read pages.
  void StartLoads(std::span<const PageLoad> loads);

  // Places pages that have arrived, and reports prefixes to the scheduler that are complete or end
  // early.
  void FinishLoads(Scheduler& scheduler);

  // Ignores what arrives for a sequence, which ends.
  void DropLoads(SequenceId id);

  PrefixStore* store() { return store_.get(); }

 private:
  // A loading sequence's pages.
  struct Prefix {
    Sequence* sequence = nullptr;  // null: it has ended
    int64_t first = 0;             // page index in the sequence
    int64_t wanted = 0;
    int64_t requested = 0;  // of the wanted ones, given to the store
    int64_t arrived = 0;
    int64_t usable = 0;   // leading pages that arrived whole
    bool broken = false;  // a page is missing: later ones are of no use
  };
  static StepCapacity MovesCapacity(const StepCapacity& of_steps);
  void RequestLoads();
  void Place(const LoadedPage& page);

  Runner& runner_;
  std::unique_ptr<PrefixStore> store_;
  Step moves_;  // without tokens
  std::map<SequenceId, Prefix> prefixes_;
};

}  // namespace latte
