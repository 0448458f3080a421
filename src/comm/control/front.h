// The front's end of the control connections. Ranks join, heartbeats go both ways, and the front
// names a dead, stopped or disconnected rank to all others. The connections also carry bytes
// between the front and the ranks.
//
// The collectives of a step use other connections and have a separate, long deadline. Heartbeats
// show that a process runs, so they find a lost rank sooner.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "latte/status.h"

#include "src/comm/communicator.h"
#include "src/comm/control/connection.h"
#include "src/comm/control/handshake.h"

namespace latte {

// Called by the thread of the front or of the rank, one at a time. They must not wait for that
// thread.
struct ControlEvents {
  // The first loss; at most once, and not after the connection was left on purpose. A rank gives it
  // to Communicator::Abandon. RankLost::kUnknown at a rank: the front itself.
  std::function<void(const RankLost&)> lost;
  // Bytes from a rank, or from the front (rank: kUnknown), in the order in which they were sent.
  std::function<void(int rank, std::string bytes)> data;
  // A rank, or the front, has left on purpose.
  std::function<void(int rank)> left;
  // A connection that may not join, for the log: each text once, at most 16 of them.
  std::function<void(const std::string& text)> refused;
};

// Thread-safe.
class ControlFront {
 public:
  // Listens on the address (socket.h) and starts a thread. secret: at least 16 bytes.
  // Errors: as ListenOn.
  static Result<std::unique_ptr<ControlFront>> Listen(const std::string& address,
                                                      const WorldIdentity& world,
                                                      const std::string& secret,
                                                      const ControlOptions& options,
                                                      ControlEvents events);
  // The same over one connection, which is one end of a socket pair: the member of a world of one
  // has the other. It may join as late as options.handshake says.
  static Result<std::unique_ptr<ControlFront>> Over(Socket connection, const WorldIdentity& world,
                                                    const std::string& secret,
                                                    const ControlOptions& options,
                                                    ControlEvents events);
  // Leaves: ranks are told that this is no loss.
  ~ControlFront();

  const std::string& address() const;  // empty after Over

  // Returns when all ranks have joined. Errors: kUnavailable, they have not within the deadline, or
  // one was lost; the message names those that are missing.
  Status WaitForRanks(std::chrono::milliseconds deadline);

  // Sends bytes to the `data` of the rank, at most ControlOptions::most_payload. A rank that is not
  // there any more gets nothing; its loss is reported by `lost`.
  void Send(int rank, std::string bytes);

 private:
  struct State;
  static Result<std::unique_ptr<ControlFront>> Start(std::unique_ptr<State> state);
  explicit ControlFront(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace latte
