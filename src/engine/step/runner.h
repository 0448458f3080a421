// Runs steps over a model and a cache, without requests or time. Each rank of a group has a runner:
// the leader's runner announces its steps, and the others compute them. Pages of a step are global
// (src/cache/page_owners.h); if ranks divide the cache, each runner finds its own pages among them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/cache/page_owners.h"
#include "src/comm/communicator.h"
#include "src/engine/step/step.h"
#include "src/kernels/registry.h"
#include "src/layers/path_groups.h"
#include "src/models/model.h"

namespace latte {

struct RunnerOptions {
  DType arithmetic = DType::kBF16;
  int64_t prefill_workspace_tokens = 4096;  // prefill workspace, in cached tokens
  bool int8_activations = true;             // for int4 and int8 weights, unless arithmetic is f32
  // Tokens from this position on take the sparse path, whatever the path of their chunk. The
  // model's top-k where all keys before are chosen anyway.
  int64_t sparse_from = kNeverSparse;
  ExpertExchange expert_exchange = ExpertExchange::kAuto;
  int64_t kept_rows = 0;  // hidden states that stay from step to step, for drafts
  // As in StepContext, if ranks divide the cache.
  bool merges_each_split = false;
};

// The communicators of one rank. They outlive what uses them.
struct RankComms {
  Communicator* world = nullptr;    // null: there are no other ranks
  Communicator* group = nullptr;    // the world, if there is one group
  Communicator* leaders = nullptr;  // the first rank of every group; null for other ranks
  Communicator* cache = nullptr;    // ranks that divide the cache; null: each has all
  // One rank of each group, all with the same place in their groups: they divide the cache of
  // sequences that are spread over groups. Null: sequences are not spread.
  Communicator* across = nullptr;
  int64_t groups = 1;
  int64_t group_index = 0;  // of this rank's group
  bool spread = false;      // for steps over spread sequences: `cache` is `across`

  // The same ranks, for steps over spread sequences. Requires: across.
  RankComms ForSpread() const {
    RankComms out = *this;
    out.cache = across;
    out.spread = true;
    return out;
  }
};

class Runner;
struct Settings;

// Brings the steps of a leader's runner to the ranks that compute them too
// (src/engine/group/leader.h). All functions throw RankLost.
class StepAnnouncer {
 public:
  virtual ~StepAnnouncer() = default;
  virtual const RankComms& comms() const = 0;
  // A new engine of the leader: the others make a runner and a cache for its settings.
  virtual void Start(const Settings& settings) = 0;
  // Before the runner computes `step`. Steps of other groups may come first: `runner` takes part in
  // them.
  virtual void Announce(Step& step, Runner& runner) = 0;
  // As Runner::FinishStep.
  virtual void Finish(Runner& runner) = 0;
  // As EngineStats::idle_tokens, of all steps so far.
  virtual int64_t idle_tokens() const = 0;
  // The runner could not compute what was announced: the others cannot go on. Does not return.
  virtual void Fail(const std::string& why) = 0;
};

// The parts of a runner. All must outlive it and be on one device.
struct RunnerParts {
  const Model* model = nullptr;
  LatentCache* cache = nullptr;
  Workspace* workspace = nullptr;
  Exec exec;
  RankComms comms = {};                // of a rank that follows
  StepAnnouncer* announcer = nullptr;  // of one that leads
};

// A block of logits.
struct StepLogits {
  TensorView logits;  // [M, vocab] f32 in host memory, valid until the next block
  // [M] 1 if all of the row's hidden state is finite, else 0. Empty for drafts, which only propose.
  std::span<const int32_t> finite;
};

// Engine-thread only.
class Runner {
 public:
  // Takes all memory that steps within `capacity` need, but for the workspace. Throws OutOfMemory.
  Runner(const RunnerParts& parts, const RunnerOptions& options, const StepCapacity& capacity);

  // Moves pages, then computes the tokens of a step. Sequences of one path should be neighbours
  // (src/layers/path_groups.h). NextLogits must then be called logit_blocks() times, while the step
  // stays as it is. Requires: every token in [0, vocab); a model with drafting layers, and a cache
  // with their rows, for their steps. If drafts share keys, row i of a later draft belongs to the
  // sequence of row i of the first. Throws OutOfMemory; with an announcer, RankLost instead.
  void Run(Step& step);
  // The next block of the last step's logits. Throws as Run, and then the block is passed over.
  StepLogits NextLogits();
  // Ends the other ranks if they wait for logits that this one will not ask for.
  void Abandon(const std::string& why);

  // Every step of an engine ends with it, also one in which nothing was computed. Where groups of
  // ranks have requests of their own, others may still compute: takes part until all have ended the
  // step.
  void FinishStep();

  // As Run and NextLogits, for a step that was announced.
  void RunAnnounced(Step& step);

  // Hidden states [T, D] of the last kDecoder step with tokens, or of the last draft.
  TensorView hidden() const;
  TensorView drafted() const;
  // The rows that are kept [kept_rows, D].
  TensorView kept() const { return kept_; }

  // The bytes of a cache page, as CacheSpec::bytes_per_page; what Step::page takes. A page of
  // another rank takes a step of its own, so this is not called between Run and the last
  // NextLogits. Throws as Run.
  std::vector<std::byte> SavePage(int32_t page);

  // For a device that is not the host: selects the kernels of steps on each of `paths` and runs
  // none, then takes the scratch memory of the largest of these steps. `step` is used for that.
  // longest: tokens of a sequence. Throws DeviceError for an op without a kernel, and with
  // kExhausted for a lack of memory.
  void Prepare(Step& step, std::span<const MlaPath> paths, int64_t longest);

  // Seconds of every op of later calls are added to `times`; null: not measured.
  void Measure(OpTimes* times) { exec_.times = times; }
  // The kernels selected since the last kDecoder step began.
  const Selections& selections() const { return *selections_; }
  const RunnerOptions& options() const { return options_; }
  // The position from which the tokens of a step take the sparse path, for Step::AddChunk. Where
  // drafts share their keys, all have lists: a list of few positions is one of all.
  int64_t SparseFrom(StepKind kind) const;
  const StepCapacity& capacity() const { return capacity_; }

 private:
  void Compute(const Step& step);
  void MovePages(const Step& step);
  void SendPage(int32_t page);
  void PrepareDrafts(Step& step, MlaPath path, int64_t longest);
  void RunModel(const Step& step, StepContext& context);
  StepContext Context(const Step& step);
  StepContext BatchContext(const Step& step);
  void FindOwnPages(const Step& step);
  StepLogits ComputeLogits(const Step& step, int64_t block);
  template <class T>
  std::span<const T> Placed(const Step& step, std::span<const T> values) const;
  TensorView RowsOf(const TensorView& x, const Step& step, std::span<const int32_t> rows);
  void PlaceSharedKeys(const Step& step, StepContext& context);
  template <class F>
  auto Guarded(const F& compute);

  const Model& model_;
  LatentCache& cache_;
  Workspace& workspace_;
  Exec exec_;
  RankComms comms_;
  StepAnnouncer* announcer_;
  RunnerOptions options_;
  StepCapacity capacity_;
  std::unique_ptr<Selections> selections_ = std::make_unique<Selections>();
  PageOwners owners_;
  int64_t own_ = 0;                 // this rank among the owners
  std::vector<int32_t> own_pages_;  // places of the step's pages; −1: of others
  std::vector<int64_t> own_slots_;  // the same of its slots
  std::vector<std::byte> sent_;     // the leader's: a page of another rank
  std::vector<SequenceChunk> chunks_;
  const Step* step_ = nullptr;  // whose logits are still to be computed; null: none
  int64_t next_block_ = 0;
  int64_t hidden_rows_ = 0;
  int64_t draft_rows_ = 0;
  Tensor placed_;  // the step's block, if the device is not the host
  Tensor hidden_;
  Tensor draft_;
  Tensor kept_;
  Tensor shared_keys_;       // room for first_choice_
  TensorView first_choice_;  // [T, K] i32: keys of the last first drafts
  Tensor logits_;
  Tensor finite_;
  Tensor host_logits_;  // copies, if the device is not the host
  Tensor host_finite_;
};

}  // namespace latte
