// Rank 0's engine of requests that are spread over groups. It computes between the steps of the
// groups, with all ranks, in pages that the groups' engines lend.
#pragma once

#include <memory>
#include <vector>

#include "src/engine/core/engine_core.h"
#include "src/engine/group/leader.h"

namespace latte {

class SpreadEngine {
 public:
  struct Parts {
    std::unique_ptr<EngineCore> core;  // with settings of SpreadSettings
    Followers* world = nullptr;        // announces its steps to all ranks
    Followers* group = nullptr;        // of rank 0's group, which follow `world` meanwhile
  };
  explicit SpreadEngine(Parts parts);

  EngineCore& core() { return *parts_.core; }
  const EngineCore& core() const { return *parts_.core; }

  // Whether the next step has work. Then the ranks must follow rank 0 (SpreadFollower::Follow).
  bool HasWork();

  // Pages that a group is to lend now, and places of pages that it gets back, once.
  int64_t Claim(int64_t group) const { return claims_[static_cast<size_t>(group)]; }
  std::vector<int32_t> TakeReturned(int64_t group) {
    return std::exchange(returned_[static_cast<size_t>(group)], {});
  }
  // The places of pages that a group has lent, and how many it lacks itself.
  void Lent(int64_t group, std::span<const int32_t> places, int64_t lacks);
  int64_t borrowed() const;  // pages of all groups

  // A step, while all ranks follow. Errors: of EngineCore::Step. Throws RankLost.
  [[nodiscard]] Status Step();
  // As EngineCore.
  [[nodiscard]] Status SavePrefixes();

  // The events since the last call.
  std::vector<TokenEvent> TakeEvents() { return std::exchange(events_, {}); }

 private:
  void ReturnPages();

  Parts parts_;
  std::vector<int64_t> claims_, lacks_;         // by group
  std::vector<std::vector<int32_t>> returned_;  // by group
  std::vector<TokenEvent> events_;
};

}  // namespace latte
