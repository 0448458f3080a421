// One process of a world of ranks that share the weights of a model: rank 0 leads, the others
// follow.
//
//   rank 0   AnnounceModel, load its share, then Share or ShareInGroups, and engines over the
//            model; its end stops the others
//   others   Follow: load the shares of the models that rank 0 announces, and compute
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/checkpoint/model_files.h"
#include "src/comm/communicator.h"
#include "src/engine/core/engine_core.h"
#include "src/engine/group/leader.h"
#include "src/engine/link/spread_engine.h"

namespace latte {

// How the ranks divide a model.
struct RankLayout {
  int64_t groups = 1;          // with requests of their own; divides the number of ranks
  bool whole_experts = false;  // as RankShare
  int64_t cache_ranks = 1;  // ranks of a group that divide the cache; divides the ranks of a group
  int64_t on_this_machine =
      1;  // ranks that share the machine's memory with this one, itself included
};

class RankWorld {
 public:
  // Every rank makes one. Errors: kInvalidArgument if ranks divide the model otherwise;
  // kUnavailable for a lost rank.
  [[nodiscard]] static Result<std::unique_ptr<RankWorld>> Create(
      std::unique_ptr<Communicator> world, const RankLayout& layout);
  // Rank 0 stops the others, if none is lost.
  ~RankWorld();

  bool leads() const { return world_->rank() == 0; }
  int64_t groups() const { return comms_.groups; }
  int64_t on_this_machine() const { return on_this_machine_; }
  Communicator& world() { return *world_; }
  // Of this rank: of everything but routed experts.
  RankShare share() const;

  // Called when this rank could not load its share, before it waits for the others to say the same.
  void OnLoadError(std::function<void(const Error&)> tell) { tell_load_error_ = std::move(tell); }

  // Rank 0: the others begin to load their shares of a model. `name` as ResolveModelPath of every
  // rank understands it. Sets the shares of `options` for rank 0.
  [[nodiscard]] Status AnnounceModel(const std::string& name, ModelOptions& options);

  // Rank 0: its share of a model that all ranks compute for one engine, which steps with
  // followers(). Waits until all have loaded. Errors: of `share`; kUnavailable if another rank
  // could not load, or is lost; kInvalidArgument if ranks found different models.
  [[nodiscard]] Result<std::unique_ptr<Model>> Share(Result<std::unique_ptr<Model>> share);
  // The same for one engine per group.
  [[nodiscard]] Result<std::unique_ptr<Model>> ShareInGroups(Result<std::unique_ptr<Model>> share);
  // Ranks that follow the engine over the model of Share, or of ShareInGroups.
  Followers& followers() { return in_groups_ ? *in_groups_ : followers_; }

  // Bytes of the weights that each rank of the world has loaded; empty before.
  const std::vector<int64_t>& weight_bytes() const { return weight_bytes_; }

  // Rank 0, after ShareInGroups: one engine, over engines of the same settings in all groups, and
  // one of requests that are spread over groups. make: an engine of this rank, with `followers` and
  // `memory` among its parts. key: as EngineCore::Create. Errors: of `make`, kUnavailable for a
  // lost rank.
  using MakeEngine = std::function<Result<std::unique_ptr<EngineCore>>(
      const Settings& settings, StepAnnouncer* followers, std::shared_ptr<RunnerMemory> memory)>;
  [[nodiscard]] Result<std::unique_ptr<Engine>> JoinEngines(const Settings& settings,
                                                            const ModelKey& key,
                                                            const MakeEngine& make);

  // The other ranks: until rank 0 ends. Errors: of `load`; kUnavailable if a rank is lost.
  struct Loaders {
    // This rank's share of a model.
    std::function<Result<std::unique_ptr<Model>>(const std::string& name, const ModelOptions&)>
        share;
    std::function<Result<Tokenizer>(const std::string& name)> tokenizer;
  };
  [[nodiscard]] Status Follow(const Machine& machine, const Loaders& load);

 private:
  RankWorld(std::unique_ptr<Communicator> world, const RankLayout& layout);
  void SetShares(ModelOptions& options) const;
  [[nodiscard]] Status Agree(const Result<std::unique_ptr<Model>>& share);
  [[nodiscard]] Result<std::unique_ptr<SpreadEngine>> MakeSpread(const Settings& group,
                                                                 const MakeEngine& make,
                                                                 const EngineCore& own);
  [[nodiscard]] Status JoinGroups(std::span<const std::byte> message,
                                  std::shared_ptr<const Model> share, const Tokenizer* tokenizer,
                                  const Machine& machine);

  std::unique_ptr<Communicator> world_;
  std::unique_ptr<Communicator> group_;    // null: there is one
  std::unique_ptr<Communicator> leaders_;  // the same
  std::unique_ptr<Communicator> cache_;    // null: each rank has all of the cache
  std::unique_ptr<Communicator> across_;   // as RankComms
  RankComms comms_;
  bool whole_experts_;
  int64_t on_this_machine_;
  std::vector<int64_t> weight_bytes_;
  Followers followers_;
  std::optional<Followers> in_groups_;
  std::optional<Followers> in_spread_;  // of the engine of spread requests
  bool lost_ = false;
  std::function<void(const Error&)> tell_load_error_;
};

}  // namespace latte
