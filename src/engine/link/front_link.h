// A rank's end of the link to its front (remote_engine.h). Every rank sends heartbeats over it, and
// rank 0 drives the engine for the front.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "latte/engine.h"

#include "src/comm/control/rank.h"
#include "src/engine/link/remote_messages.h"

namespace latte {

// Where the front of a world of ranks listens, and what proves that a rank is one of them.
struct FrontAddress {
  std::string address;
  std::string secret;       // at least 16 bytes
  std::string config_hash;  // WorldIdentity::config_hash
  int inherited = -1;       // ChildProcesses::Start; where the address is that of a socket pair
};

class FrontLink {
 public:
  // Joins. `lost`: the front or another rank is lost, and this process has to end; called by a
  // thread of the link. Errors: as ControlRank::Join.
  [[nodiscard]] static Result<std::unique_ptr<FrontLink>> Join(
      const FrontAddress& front, int rank, int ranks, std::function<void(const RankLost&)> lost,
      const ControlOptions& options = {});
  ~FrontLink();
  FrontLink(const FrontLink&) = delete;
  FrontLink& operator=(const FrontLink&) = delete;

  // Tells the front why this rank ends. The first error that the front gets is the cause.
  void Fail(const Error& error);

  // Rank 0: drives the engine for the front until it leaves. Errors: of Engine::Step.
  [[nodiscard]] Status Serve(Engine& engine);

 private:
  explicit FrontLink(const ControlOptions& options) : options_(options) {}

  // On the thread of the link.
  void OnMessage(const std::string& bytes);
  void OnSubmit(Request request);
  void OnLeft();
  // On the engine's.
  [[nodiscard]] Status Drive(Engine& engine);
  void Report(std::span<const TokenEvent> events);
  void Send(const RankMessage& head, std::span<const TokenEvent> events);
  void SendTooLarge(const RankMessage& head, const TokenEvent& event, size_t bytes);
  void WaitForDelivery(size_t bytes);
  bool IsCut(const TokenEvent& event);

  const ControlOptions options_;
  std::chrono::steady_clock::time_point last_report_;  // the engine's thread uses this and the next
  std::set<std::pair<RequestId, int>> cut_;  // answers that ended here, and not yet in the engine

  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  Engine* engine_ = nullptr;  // while it is served
  bool left_ = false;
  bool wants_saving_ = false;
  std::vector<TokenEvent> refusals_;  // not reported yet
  int64_t taken_ = 0;
  size_t undelivered_ = 0;  // bytes of reports with events

  std::unique_ptr<ControlRank> control_;  // last: its thread ends first
};

}  // namespace latte
