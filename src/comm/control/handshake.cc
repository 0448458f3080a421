#include "src/comm/control/handshake.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/comm/control/secret.h"

namespace latte {
namespace {

constexpr size_t kNonceBytes = 32;
constexpr size_t kLeastSecretBytes = 16;
constexpr const char* kJoinPurpose = "latte join";
constexpr const char* kWelcomePurpose = "latte welcome";

// The beginning of a digest, for messages.
std::string Short(std::string_view digest) { return InHex(digest.substr(0, 6)); }

template <class T>
tl::unexpected<Error> Differs(std::string_view what, const T& expected, const T& found) {
  return InvalidArgument(fmt::format(
      "a rank may not join: its {} is {}, but that of the other ranks is {}; start all ranks "
      "with the same program and options",
      what, found, expected));
}

// Text of a peer that has proved nothing.
std::string Printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return std::isprint(c) == 0; }, '?');
  return text;
}

}  // namespace

FrontHandshake::FrontHandshake(const WorldIdentity& world, std::string_view secret)
    : world_(world), secret_(secret) {
  LATTE_CHECK(secret.size() >= kLeastSecretBytes, "a secret of {} bytes", secret.size());
  FieldWriter hello;
  hello.U32(kControlVersion);
  hello.Bytes(RandomBytes(kNonceBytes));
  hello_payload_ = hello.bytes();
  hello_ = FrameBytes(FrameType::kHello, hello_payload_);
}

Result<int> FrontHandshake::Check(const Frame& frame,
                                  const std::function<bool(int)>& has_joined) const {
  if (frame.type != FrameType::kJoin) return Corrupt("control connection: no request to join");
  FieldReader fields(frame.payload);
  const uint32_t version = fields.U32();
  const uint32_t world_size = fields.U32();
  const uint32_t rank = fields.U32();
  const uint64_t epoch = fields.U64();
  const std::string config_hash = fields.Bytes(kDigestBytes);
  fields.Bytes(kNonceBytes);
  const std::string proof = fields.Bytes(kDigestBytes);
  if (!fields.complete()) return Corrupt("control connection: a request to join of another length");
  const std::string_view proved =
      std::string_view(frame.payload).substr(0, frame.payload.size() - kDigestBytes);
  if (!SameProof(proof, Proof(secret_, kJoinPurpose + hello_payload_ + std::string(proved)))) {
    return InvalidArgument("a rank may not join: it does not know the secret of the other ranks");
  }
  if (version != kControlVersion) return Differs("protocol version", kControlVersion, version);
  if (world_size != world_.world_size) {
    return Differs("number of ranks", world_.world_size, world_size);
  }
  if (epoch != world_.epoch) return Differs("start number", world_.epoch, epoch);
  if (config_hash != world_.config_hash) {
    return Differs("configuration", Short(world_.config_hash), Short(config_hash));
  }
  if (rank >= world_size) {
    return InvalidArgument(
        fmt::format("a rank may not join: it is rank {} of {}", rank, world_size));
  }
  if (has_joined(static_cast<int>(rank))) {
    return InvalidArgument(fmt::format(
        "a rank may not join: rank {} has joined already; give each its own number", rank));
  }
  return static_cast<int>(rank);
}

FrontHandshake::Answer FrontHandshake::OnFrame(const Frame& frame,
                                               const std::function<bool(int)>& has_joined) const {
  Answer answer;
  answer.rank = Check(frame, has_joined);
  answer.frame =
      answer.rank
          ? FrameBytes(FrameType::kWelcome,
                       Proof(secret_, kWelcomePurpose + hello_payload_ + frame.payload))
          : FrameBytes(
                FrameType::kRefusal,
                std::string_view(answer.rank.error().message).substr(0, kMostHandshakeBytes));
  return answer;
}

RankHandshake::RankHandshake(const WorldIdentity& world, int rank, std::string_view secret)
    : world_(world), rank_(rank), secret_(secret) {
  LATTE_CHECK(secret.size() >= kLeastSecretBytes, "a secret of {} bytes", secret.size());
  LATTE_CHECK(world.config_hash.size() == kDigestBytes, "{} bytes", world.config_hash.size());
}

Result<std::string> RankHandshake::OnHello(const Frame& frame) {
  FieldReader hello(frame.payload);
  const uint32_t version = hello.U32();
  hello.Bytes(kNonceBytes);
  if (frame.type != FrameType::kHello || !hello.complete()) {
    return Corrupt("control connection: the front does not greet; is it `latte serve`?");
  }
  if (version != kControlVersion) {
    return Unsupported(fmt::format(
        "the front speaks version {} of the control protocol, this rank version {}: start all "
        "ranks with the same program",
        version, kControlVersion));
  }
  FieldWriter join;
  join.U32(kControlVersion);
  join.U32(world_.world_size);
  join.U32(static_cast<uint32_t>(rank_));
  join.U64(world_.epoch);
  join.Bytes(world_.config_hash);
  join.Bytes(RandomBytes(kNonceBytes));
  join.Bytes(Proof(secret_, kJoinPurpose + frame.payload + join.bytes()));
  exchanged_ = frame.payload + join.bytes();
  return FrameBytes(FrameType::kJoin, join.bytes());
}

Status RankHandshake::OnAnswer(const Frame& frame) const {
  if (frame.type == FrameType::kRefusal) {
    return Fail(Code::kUnavailable,
                fmt::format("the front refuses rank {}: {}", rank_, Printable(frame.payload)));
  }
  if (frame.type != FrameType::kWelcome ||
      !SameProof(frame.payload, Proof(secret_, kWelcomePurpose + exchanged_))) {
    return Corrupt("control connection: the front does not know the secret of the ranks");
  }
  return {};
}

}  // namespace latte
