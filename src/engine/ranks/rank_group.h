// One process of a group of ranks that share the weights of a model: rank 0 leads, the others follow.
//
//   leader     AnnounceModel, load its share, Share, then engines over model(); its end stops the others
//   followers  Follow: load the shares of the models that the leader announces, and compute
#pragma once

#include <memory>
#include <string>

#include "src/comm/communicator.h"
#include "src/engine/ranks/leader.h"

namespace latte {

class RankGroup {
 public:
  // whole_experts: as RankShare; the leader's counts.
  RankGroup(std::unique_ptr<Communicator> world, bool whole_experts);
  // The leader stops the followers, if none is lost.
  ~RankGroup();

  bool leads() const { return world_->rank() == 0; }
  RankShare share() const { return {world_->rank(), world_->size(), whole_experts_}; }

  // Leader: the followers begin to load their shares of a model. `name` as ResolveModelPath of every rank
  // understands it. Sets options.share to the leader's.
  [[nodiscard]] Status AnnounceModel(const std::string& name, ModelOptions& options);

  // Leader: a model that all ranks compute, whose share here is `share`; the group outlives it. Waits
  // until all have loaded. Errors: of `share`; kUnavailable if another rank could not load, or is lost;
  // kInvalidArgument if ranks found different models.
  [[nodiscard]] Result<std::unique_ptr<Model>> Share(Result<std::unique_ptr<Model>> share);

  Followers& followers() { return followers_; }

  // Followers: until the leader ends. `load` loads this rank's share of a model. Errors: of `load`;
  // kUnavailable if a rank is lost.
  using LoadShare = std::function<Result<std::unique_ptr<Model>>(const std::string& name,
                                                                 const ModelOptions& options)>;
  [[nodiscard]] Status Follow(const Machine& machine, const LoadShare& load);

 private:
  [[nodiscard]] Status Agree(const Result<std::unique_ptr<Model>>& share);

  std::unique_ptr<Communicator> world_;
  Followers followers_;
  bool whole_experts_;
  bool lost_ = false;
};

}  // namespace latte
