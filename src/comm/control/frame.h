// Frames of the control connection: the bytes between the front and its ranks.
//
//   offset  bytes
//        0      4  "LTC1"
//        4      4  type, a FrameType
//        8      4  length of the payload
//       12      …  payload: the fields of handshake.h and messages.h
//
// All numbers are little-endian and unsigned. A reader knows the largest payload before it reads,
// so a length never decides how much memory is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

enum class FrameType : uint32_t {
  kHello = 1,      // front → rank: version, nonce
  kJoin = 2,       // rank → front: who it is, nonce, proof of the secret
  kWelcome = 3,    // front → rank: proof of the secret
  kRefusal = 4,    // front → rank: why it may not join
  kHeartbeat = 5,  // both ways
  kLost = 6,       // both ways: the rank that is lost, and why
  kData = 7,       // both ways: bytes that this layer does not read
  kLeave = 8,      // both ways: the end of this connection is no loss
};
inline constexpr uint32_t kLastFrameType = 8;

struct Frame {
  FrameType type = FrameType::kHeartbeat;
  std::string payload;
  bool operator==(const Frame&) const = default;
};

inline constexpr size_t kFrameHeadBytes = 12;

// Requires: the payload is shorter than 2^32 bytes.
std::string FrameBytes(FrameType type, std::string_view payload);

// Bytes of a stream into frames, however they are cut.
class FrameReader {
 public:
  explicit FrameReader(size_t most_payload) : most_payload_(most_payload) {}

  // Reads frames to the end of `bytes` and keeps a part of a frame for the next call.
  // Errors: kCorrupt; no further call is useful: where frames begin is not known any more.
  Result<std::vector<Frame>> Take(std::string_view bytes);

  // For frames after this call, and the one that has begun.
  void SetMostPayload(size_t bytes) { most_payload_ = bytes; }

 private:
  size_t most_payload_;
  std::string waiting_;  // less than a frame
};

// Fields of a payload.
class FieldWriter {
 public:
  void U32(uint32_t value);
  void U64(uint64_t value);
  void Bytes(std::string_view bytes) { out_ += bytes; }  // without their length
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

// A field that is missing is zero or empty, and complete() is then false.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}
  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  uint64_t U64() { return Number(8); }
  std::string Bytes(size_t count);
  std::string Rest() { return Bytes(rest_.size()); }
  // Whether all fields were there and nothing follows.
  bool complete() const { return !missing_ && rest_.empty(); }

 private:
  uint64_t Number(size_t bytes);

  std::string_view rest_;
  bool missing_ = false;
};

}  // namespace latte
