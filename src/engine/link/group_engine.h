// The engine of one group of ranks; each group has one. Rank 0 of the world assigns requests to the
// groups and collects their events (dp_engine.h). All groups step together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/comm/communicator.h"
#include "src/engine/core/engine_core.h"

namespace latte {

// What rank 0 tells the leaders of groups: one message per step.
struct GroupOrders {
  enum class Kind : int64_t { kStep, kSavePrefixes, kSpread, kStop };
  struct Order {
    int64_t group = 0;
    RequestId id = 0;
    std::optional<Request> request;  // with this id; none: cancel it
  };
  // Pages of one group for requests that are spread over groups (spread_engine.h).
  struct Pages {
    int64_t lend = 0;               // so many of those that are not in use
    std::vector<int32_t> returned;  // that the group has lent
  };
  Kind kind = Kind::kStep;
  // After the report all ranks follow rank 0 in a step over spread requests; for kSpread without a
  // report.
  bool spread = false;
  std::vector<Order> orders;
  std::vector<Pages> pages;  // by group; empty: nothing is spread
};

// The answer of a leader.
struct GroupReport {
  // Tokens that an admitted request has yet to compute before its next one, if more than one.
  struct Prefill {
    RequestId request = 0;
    int64_t tokens = 0;
  };
  bool more_to_do = false;  // the next step has work
  QueueCount queue;
  EngineStats stats;
  std::vector<TokenEvent> events;
  std::vector<Prefill> prefills;  // after these events
  std::vector<int32_t> lent;      // pages, for spread requests
  int64_t lacks = 0;              // pages that its requests wait for
  std::optional<Error> error;     // of SavePrefixes
};

std::vector<std::byte> WriteOrders(const GroupOrders& orders);
std::vector<std::byte> WriteReport(const GroupReport& report);
// Errors: kCorrupt for the message of another build.
[[nodiscard]] Result<GroupOrders> ReadOrders(std::span<const std::byte> message);
[[nodiscard]] Result<GroupReport> ReadReport(std::span<const std::byte> message);

class GroupEngine {
 public:
  // group: its index. world: outlives this.
  GroupEngine(std::unique_ptr<EngineCore> core, int64_t group, Communicator& world);

  EngineCore& core() { return *core_; }
  const EngineCore& core() const { return *core_; }

  // Carries out the orders for this group and, for kStep, a step together with all groups. Throws
  // RankLost, also if the engine fails: it cannot go on, so no group can.
  GroupReport Do(const GroupOrders& orders);

 private:
  void Accept(const GroupOrders::Order& order);
  std::vector<GroupReport::Prefill> Prefills() const;
  void MovePages(const GroupOrders& orders, GroupReport& report);
  [[noreturn]] void Fail(const Error& error);

  std::unique_ptr<EngineCore> core_;
  int64_t group_;
  Communicator& world_;
  std::vector<TokenEvent> events_;  // of the step
};

// Leaders but rank 0: does what rank 0 says until it says kStop. follow_spread(): the part of this
// leader's group in a step over spread requests. Throws RankLost.
void FollowOrders(GroupEngine& engine, Communicator& leaders,
                  const std::function<void()>& follow_spread);

}  // namespace latte
