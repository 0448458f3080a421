// An engine in other processes: the ranks of a world, or a single process. The front is not a rank:
// it starts the ranks, checks requests, and receives events from rank 0 (front_link.h). When a rank
// is lost, every call fails with an error that names it, and the front starts another world.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "latte/engine.h"

#include "src/checkpoint/model_files.h"
#include "src/comm/control/front.h"
#include "src/comm/launch/processes.h"
#include "src/engine/link/front_link.h"
#include "src/engine/link/remote_messages.h"
#include "src/engine/settings.h"

namespace latte {

// Starts the ranks, each of which joins with a FrontLink.
using RankStarter =
    std::function<Result<std::unique_ptr<RankProcesses>>(const FrontAddress& front)>;

struct RemoteOptions {
  int ranks = 1;
  std::string config_hash;  // WorldIdentity::config_hash
  double step_timeout = 0;  // seconds; a rank 0 that reports nothing for longer is stuck; 0: never
  ControlOptions control = {};
  std::chrono::milliseconds joining = std::chrono::minutes(2);  // until all ranks have joined
  std::chrono::milliseconds ending =
      std::chrono::seconds(10);  // until all have ended by themselves
};

class RemoteEngine final : public Engine {
 public:
  // Starts the ranks and waits until they have loaded the model. They connect to a Unix socket in a
  // folder that only this user may enter, and that is there only until all have joined. A rank that
  // is alone inherits one end of a socket pair instead; errors call it "the engine's process".
  // files: of the model, to check requests; they outlive the engine. stop: gives up. Errors: of
  // start; of a rank that fails to load; kUnavailable: a rank is lost, or does not join; kCancelled
  // after a stop.
  [[nodiscard]] static Result<std::unique_ptr<RemoteEngine>> Start(const RemoteOptions& options,
                                                                   const ModelFiles& files,
                                                                   const RankStarter& start,
                                                                   const std::stop_token& stop);
  // Ends the ranks and returns when they are gone.
  ~RemoteEngine() override;

  // A request that rank 0 refuses, as its queue is full, fails through an event.
  [[nodiscard]] Result<RequestId> Submit(Request request) override;
  void Cancel(RequestId id) override;
  void SetEventSink(EventSink sink) override { sink_ = std::move(sink); }
  // Gives the events that have arrived to the sink. Errors: why the group of ranks has ended.
  [[nodiscard]] Status Step() override;
  bool WaitForWork(std::chrono::steady_clock::time_point deadline) override;
  void Wake() override;
  [[nodiscard]] Status SavePrefixes() override;
  EngineStats Stats() const override;
  const EngineOptions& options() const override { return settings_.options; }

 private:
  RemoteEngine(const RemoteOptions& options, const ModelFiles& files)
      : options_(options), files_(files) {}

  [[nodiscard]] Status Launch(const RankStarter& start, const std::stop_token& stop);
  [[nodiscard]] Status LaunchOne(FrontAddress address, const RankStarter& start);
  WorldIdentity Identity() const;
  ControlEvents Events();
  [[nodiscard]] Status AwaitJoined(const std::stop_token& stop);
  [[nodiscard]] Status AwaitLoaded(const std::stop_token& stop);
  [[nodiscard]] Status CheckRanks();
  [[nodiscard]] Status SendRequest(Request request, RequestId* id);
  void FindCause();
  std::string NameOf(int rank) const;
  std::string LauncherName() const;

  // On the thread of the control connection.
  void OnMessage(int rank, const std::string& bytes);
  void OnReport(RankMessage message, size_t bytes);
  void OnLoaded(RankMessage message);
  void OnFailed(int rank, const Error& error);
  void SetFailure(Code code, std::string message);

  const RemoteOptions options_;
  const ModelFiles& files_;
  EventSink sink_;
  Settings settings_;  // written once, before loaded_

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool loaded_ = false;
  bool ending_ = false;
  bool woken_ = false;
  std::optional<Error> failure_;
  bool rank_says_why_ = false;  // failure_ is final
  std::optional<Error> saved_;  // kOk: all prefixes
  EngineStats stats_;
  std::chrono::steady_clock::time_point last_report_;
  std::vector<TokenEvent> events_;  // for the sink
  size_t event_bytes_ = 0;          // of the reports that they came with
  std::deque<int64_t> untaken_;     // prompt tokens of requests on their way to rank 0
  int64_t untaken_tokens_ = 0;
  int64_t taken_ = 0;
  RequestId last_id_ = 0;

  std::unique_ptr<RankProcesses> processes_;  // the engine's thread
  std::unique_ptr<ControlFront> front_;       // last: its thread uses the rest
};

}  // namespace latte
