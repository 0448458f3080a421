// Decides the tokens of each sequence in the next step: pure arithmetic over lengths and
// pages, without clock, device or thread. The same calls give the same plans.
//
// Order      Running sequences come first: decodes (one token left), then prompts in their order, a
//            chunk each; then the queue, first come first served. A priority unit is worth
//            `aging_steps` steps of waiting, so every waiting sequence is served in the end.
// Yielding   A prompt leaves up to half of a step to prompts that have at most an eighth of its
//            tokens to compute, so that they need not wait for all of it. It takes at most twice as
//            long.
// Admission  takes a whole prompt or none: pages for all of it are available before it starts, and
//            smaller sequences do not overtake the head of the queue.
// Sharing    A prompt begins with pages that others computed. A prompt whose beginning another
//            sequence is computing waits for that result.
// Drafts     A decode may compute guesses of the next tokens in the same step. They get half of the
//            tokens that decodes leave, and pages as long as one is left for every other running
//            sequence, so they preempt nothing.
// Preemption When a running sequence needs a page and none is left, the last in order releases its
//            own pages and returns to the queue. It keeps its shared prefix and its path, so its
//            bytes do not change when it is computed again.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "src/cache/cache_manager.h"
#include "src/engine/schedule/sequence.h"

namespace latte {

struct SchedulerOptions {
  int64_t max_batch_tokens = 512;  // new tokens per step
  int64_t max_sequences = 64;      // running or loading at once; below max_batch_tokens
  int64_t aging_steps = 512;
  int64_t min_chunk_tokens = 64;  // a second prompt in a step gets no smaller chunk
  // Rows of generated tokens may be reused by prompts (not under strict determinism).
  bool share_generated = true;
  MlaPath decode_path = MlaPath::kAbsorbed;
  // A preempted sequence is computed again as it was before, so that its bytes do not change; if
  // not, as one prompt on whatever prefix there is by then.
  bool replay = true;
  // The path of a prompt with so many tokens to compute after so many in the cache.
  std::function<MlaPath(int64_t new_tokens, int64_t cached_tokens)> prompt_path;
  // The path by which a chunk of `count` tokens after `cached_len` others is sorted, chosen in
  // every step: sparse attention depends on the length so far. `usual` is the prompt's path or
  // decode_path. The Runner decides the path of each token by its position.
  std::function<MlaPath(MlaPath usual, int64_t cached_len, int64_t count)> chunk_path =
      [](MlaPath usual, int64_t, int64_t) { return usual; };
  // How many pages of a prompt, from `first` on, can be read from disk; empty: none.
  std::function<int64_t(const Sequence&, int64_t first)> pages_on_disk;
};

// What one sequence computes in a step.
struct SequenceStep {
  Sequence* sequence = nullptr;
  SequenceChunk chunk;   // query_start is left to the batch
  bool samples = false;  // the chunk holds the last token: the next one can be sampled
  int64_t drafts = 0;    // the chunk ends with so many drafts
  bool repeats = false;  // its last token is to be computed again, as nothing could be sampled yet
};

// A page of a loading sequence's prefix.
struct PageLoad {
  Sequence* sequence = nullptr;
  int64_t page_idx = 0;  // in the sequence
  int32_t page = -1;     // to be written
};

// Valid until a sequence of it changes.
struct StepPlan {
  std::vector<PageOp> ops;          // to be run before anything is computed, in order
  std::vector<PageLoad> loads;      // to be started; Scheduler::Loaded reports the end
  std::vector<SequenceStep> steps;  // sorted by path
  std::vector<Sequence*> admitted;  // for the first time
  std::vector<Sequence*> preempted;
  int64_t tokens = 0;  // of all steps

  bool empty() const { return steps.empty() && ops.empty() && loads.empty(); }
};

// Engine-thread only. The cache must outlive it, and every sequence its own Remove.
class Scheduler {
 public:
  Scheduler(SchedulerOptions options, CacheManager& cache);

  // Puts a sequence into the queue. Requires: its id is new, the prompt is not empty and shorter
  // than max_len, max_len tokens fit into the cache, and its outputs into max_sequences.
  void Add(Sequence& s);

  // Chooses the next step's work and takes the pages for it.
  StepPlan Plan();

  // The plan's tokens were computed; whole pages become findable.
  void Advance(const StepPlan& plan);

  // Adds `copy`, a copy of `s` with an id of its own: another output of the same prompt, which
  // shares all pages so far. Requires: `s` runs, has computed its last token and has outputs left.
  void Fork(Sequence& s, Sequence& copy);

  // A sampled token. Returns whether it is the draft for its place: then it is computed already,
  // and the token after it can be sampled too. If not, the other drafts are of no use. Requires:
  // `s` runs and has computed its last token; length below max_len.
  bool Append(Sequence& s, int32_t token);

  // Takes pages for drafts, before Plan. Returns for how many of `count` there is room; 0 for a
  // sequence that has no sampled token to compute.
  int64_t ReserveDrafts(Sequence& s, int64_t count);

  // The first `pages` pages that were to be loaded have arrived, the others did not.
  // Unless the sequence has ended, it runs from the next step on.
  void Loaded(Sequence& s, int64_t pages);

  // Ends a sequence in whatever state it is, and releases its pages.
  void Remove(Sequence& s);

  // How many pages of an owner the sequences lack: those that run for `ahead` more tokens each, the
  // next one in the queue for its prompt and as many. Negative: pages that are left over.
  int64_t PagesShort(int64_t owner, int64_t ahead) const;

  bool idle() const { return queue_.empty() && running_.empty(); }  // nothing to do
  int64_t waiting() const { return static_cast<int64_t>(queue_.size()); }
  int64_t running() const { return static_cast<int64_t>(running_.size()); }  // loading ones too
  int64_t preemptions() const { return preemptions_; }

 private:
  // By rank; earlier ones first.
  struct Earlier {
    bool operator()(const Sequence* a, const Sequence* b) const {
      return a->rank != b->rank ? a->rank < b->rank : a->spec.id < b->spec.id;
    }
  };
  using Ordered = std::set<Sequence*, Earlier>;

  // The parts of Plan, in their order.
  void PlanDecodes(StepPlan& plan);
  void AddDrafts(StepPlan& plan) const;
  void PlanPrompts(StepPlan& plan);
  void PlanAdmissions(StepPlan& plan);

  enum class Admission { kYes, kWaitsForPages, kWaitsForOthers };
  Admission Admit(Sequence& s, StepPlan& plan);
  bool SharesWithRunning(const Sequence& s) const;
  void Start(Sequence& s);
  int64_t PagesToLoad(const Sequence& s, int64_t first) const;
  void BeginLoads(Sequence& s, int64_t pages, StepPlan& plan);
  Admission AdmitAlone(Sequence& s, StepPlan& plan);
  bool DropLocksOfWaiting(const Sequence& except);  // whether there were any
  void DropLock(Sequence& s);

  // As many of its remaining tokens as there is room for.
  bool AddChunk(Sequence& s, StepPlan& plan);
  // How many tokens of the step `s` leaves to much shorter prompts.
  int64_t TokensForShorter(Sequence& s) const;
  // Gives what the shorter prompts could not use to the chunks that were cut for them.
  void FillUp(StepPlan& plan) const;
  void AddStep(Sequence& s, int64_t count, StepPlan& plan);
  MlaPath PathOf(const Sequence& s, int64_t count) const;  // of its next `count` tokens
  bool TakePage(Sequence& s, StepPlan& plan);  // for one more token, by preemption if it must be
  void Preempt(Sequence& s, StepPlan& plan);
  void Offer(Sequence& s);  // whole pages to the prefix cache

  int64_t PagesFor(int64_t tokens) const;
  int64_t FreePlaces() const;  // for sequences, future forks counted
  int64_t Room(const StepPlan& plan) const { return options_.max_batch_tokens - plan.tokens; }

  SchedulerOptions options_;
  CacheManager& cache_;
  Ordered queue_;
  Ordered running_;  // and loading
  int64_t step_ = 0;
  int64_t most_for_shorter_ = 0;  // tokens of the step that is being planned
  int64_t preemptions_ = 0;
};

}  // namespace latte
