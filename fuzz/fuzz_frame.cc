// Frames of the control connection: what they are does not depend on how the bytes are cut, no
// frame is longer than allowed, and the handshake lets no stranger in.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/check.h"
#include "src/comm/control/frame.h"
#include "src/comm/control/handshake.h"
#include "src/comm/control/messages.h"
#include "src/comm/control/secret.h"

namespace {

constexpr size_t kMostPayload = 300;

struct Arrival {
  std::vector<latte::Frame> frames;
  std::string error;
  bool operator==(const Arrival&) const = default;
};

// The bytes in parts of at most `part`, until an error.
Arrival Arrive(std::string_view bytes, size_t part) {
  latte::FrameReader reader(kMostPayload);
  Arrival arrival;
  for (size_t at = 0; at < bytes.size() && arrival.error.empty(); at += part) {
    auto frames = reader.Take(bytes.substr(at, part));
    if (!frames) {
      arrival.error = frames.error().message;
    } else {
      arrival.frames.insert(arrival.frames.end(), frames->begin(), frames->end());
    }
  }
  return arrival;
}

void Handshakes(const latte::Frame& frame) {
  static const std::string secret(32, 's');
  static const latte::WorldIdentity world{4, 1, latte::Digest("config")};
  static const latte::FrontHandshake front(world, secret);
  const auto answer = front.OnFrame(frame, [](int) { return false; });
  LATTE_CHECK(!answer.rank, "a stranger is rank {}", answer.rank.value_or(-1));
  latte::RankHandshake rank(world, 1, secret);
  if (rank.OnHello(frame)) LATTE_CHECK(frame.type == latte::FrameType::kHello);
  LATTE_CHECK(!rank.OnAnswer(frame), "a front without the secret is trusted");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Arrival whole = Arrive(bytes, size + 1);
  const Arrival cut = Arrive(bytes, 1);
  // Frames before an error arrive only if the error is not in the same part.
  LATTE_CHECK(whole.error == cut.error && (!whole.error.empty() || whole == cut), "{} / {}",
              whole.error, cut.error);
  std::string again;
  for (const latte::Frame& frame : cut.frames) {
    LATTE_CHECK(frame.payload.size() <= kMostPayload, "{}", frame.payload.size());
    again += latte::FrameBytes(frame.type, frame.payload);
    Handshakes(frame);
    const latte::RankLost lost = latte::ReadLost(frame.payload, 4);
    LATTE_CHECK(lost.rank() >= latte::RankLost::kUnknown && lost.rank() < 4, "{}", lost.rank());
  }
  LATTE_CHECK(bytes.starts_with(again));
  return 0;
}
