// How a rank joins its front. Both prove that they know the secret, which is never sent, and the
// front refuses a rank that does not belong to this start of this world.
//
//   front → rank  kHello    u32 version, 32 bytes nonce
//   rank → front  kJoin     u32 version, u32 world size, u32 rank, u64 epoch, 32 bytes config hash,
//                           32 bytes nonce, 32 bytes proof of "latte join" · hello · the fields
//                           before
//   front → rank  kWelcome  32 bytes proof of "latte welcome" · hello · join
//              or kRefusal  text, at most 512 bytes
//
// The proof is HMAC-SHA-256. It protects the handshake, not what follows: the network between ranks
// has to be a trusted one, as for MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/comm/control/frame.h"

namespace latte {

inline constexpr uint32_t kControlVersion = 1;
inline constexpr size_t kMostHandshakeBytes = 512;  // of a payload

struct WorldIdentity {
  uint32_t world_size = 1;
  uint64_t epoch = 0;       // number of the start of the world: another after every restart
  std::string config_hash;  // Digest (secret.h) of everything that ranks must agree on
};

// The front's side of one connection. Immutable after construction.
class FrontHandshake {
 public:
  // secret: at least 16 bytes.
  FrontHandshake(const WorldIdentity& world, std::string_view secret);

  // The first frame to send.
  const std::string& hello() const { return hello_; }

  struct Answer {
    std::string frame;      // to send
    Result<int> rank = -1;  // the rank that has joined, or why it may not
  };
  // has_joined(rank): whether another connection is this rank already.
  // Errors of Answer::rank: kInvalidArgument with expected and found; kCorrupt: no kJoin frame.
  Answer OnFrame(const Frame& frame, const std::function<bool(int)>& has_joined) const;

 private:
  Result<int> Check(const Frame& frame, const std::function<bool(int)>& has_joined) const;

  const WorldIdentity& world_;
  std::string_view secret_;
  std::string hello_payload_;
  std::string hello_;
};

// The rank's side.
class RankHandshake {
 public:
  RankHandshake(const WorldIdentity& world, int rank, std::string_view secret);

  // The frame to send after the front's first. Errors: kCorrupt; kUnsupported, another version.
  Result<std::string> OnHello(const Frame& frame);
  // Errors: kUnavailable, refused; kCorrupt, or the front does not know the secret.
  Status OnAnswer(const Frame& frame) const;

 private:
  const WorldIdentity& world_;
  int rank_;
  std::string_view secret_;
  std::string exchanged_;  // both payloads
};

}  // namespace latte
