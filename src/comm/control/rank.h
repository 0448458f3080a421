// A rank's end of the control connection to its front: it joins, sends heartbeats from a separate
// thread, and learns when another rank, or the front, is lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "src/comm/control/front.h"

namespace latte {

// Thread-safe.
class ControlRank {
 public:
  // Connects, trying again until the deadline, joins, and starts a thread.
  // Errors: as ConnectTo and RankHandshake; kUnavailable: no answer within the deadline.
  static Result<std::unique_ptr<ControlRank>> Join(
      const std::string& address, const WorldIdentity& world, int rank, const std::string& secret,
      const ControlOptions& options, std::chrono::milliseconds deadline, ControlEvents events);
  // Leaves: the front is told that this is no loss.
  ~ControlRank();

  void Send(std::string bytes);

  // Tells the front which rank this one has lost, so that it names the culprit and not this rank,
  // which ends now. Returns when the front has the message, or after ControlOptions::interval.
  void Report(const RankLost& lost);

 private:
  struct State;
  explicit ControlRank(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace latte
