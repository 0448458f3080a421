// Several engines as one: rank 0's side of data parallelism. It assigns each request to the engine
// of a group of ranks, or to the engine of spread requests, which all ranks compute, and collects
// the events of all engines. Its step is a step of all groups, then a step of the spread requests,
// if there are any.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "src/engine/group/leader.h"
#include "src/engine/link/group_engine.h"
#include "src/engine/link/spread_engine.h"
#include "src/engine/route/group_choice.h"
#include "src/engine/route/spread_rule.h"

namespace latte {

class DpEngine final : public Engine {
 public:
  struct Parts {
    std::unique_ptr<GroupEngine> own;           // of rank 0's group
    Communicator* leaders = nullptr;            // of all groups; this is rank 0
    Followers* followers = nullptr;             // of rank 0's group; told to stop at the end
    std::unique_ptr<SpreadEngine> spread = {};  // null: requests are not spread
  };
  explicit DpEngine(Parts parts);
  // Ends the engines of all groups.
  ~DpEngine() override;

  [[nodiscard]] Result<RequestId> Submit(Request request) override;
  void Cancel(RequestId id) override;
  void SetEventSink(EventSink sink) override { sink_ = std::move(sink); }
  [[nodiscard]] Status Step() override;
  void Wake() override;
  bool WaitForWork(std::chrono::steady_clock::time_point deadline) override;
  [[nodiscard]] Status SavePrefixes() override;
  EngineStats Stats() const override;  // of all groups together
  // max_tokens: of spread requests too.
  const EngineOptions& options() const override { return options_; }

  // The counters of each group after the last step. Thread-safe.
  std::vector<EngineStats> GroupStats() const;

 private:
  // A request that has not ended.
  struct Live {
    std::optional<GivenRequest> given;  // none: it is spread
    int open = 0;                       // answers that have not ended
  };
  const RequestRules& rules() const;
  void Give(RequestId id, Request request, GivenRequest given);
  GroupOrders TakeOrders();
  std::vector<GroupReport> Tell(const GroupOrders& orders);
  void StepSpread(const std::vector<GroupReport>& reports, bool steps);
  std::vector<TokenEvent> Note(std::vector<GroupReport> reports, std::span<const QueueCount> told);
  void Note(const TokenEvent& event);
  QueueCount QueueOf(int64_t group) const;
  Result<GivenRequest> Choose(const Sequence& s) const;

  Parts parts_;
  EngineOptions options_;
  QueueLimits limits_;  // of each group
  std::optional<SpreadRule> rule_;
  EventSink sink_;
  std::optional<Error> broken_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  GroupChoice choice_;
  RequestId last_id_ = 0;
  std::vector<GroupOrders::Order> orders_;  // for the next step
  std::vector<QueueCount> ordered_;         // requests that no report counts yet, by group
  std::map<RequestId, Live> live_;
  std::vector<GroupReport> reports_;  // the last of each group, without events
  EngineStats spread_stats_;          // of spread requests
  int64_t borrowed_ = 0;              // pages that they have of the groups
  bool more_to_do_ = false;
  bool woken_ = false;
};

}  // namespace latte
