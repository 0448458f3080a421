#include "src/comm/control/messages.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/comm/control/frame.h"

namespace latte {
namespace {

constexpr size_t kMostText = 512;

}  // namespace

std::string LostPayload(const RankLost& lost) {
  FieldWriter fields;
  fields.U32(static_cast<uint32_t>(lost.rank()));
  fields.Bytes(std::string_view(lost.what()).substr(0, kMostText));
  return fields.bytes();
}

RankLost ReadLost(std::string_view payload, uint32_t world_size) {
  FieldReader fields(payload);
  const uint32_t rank = fields.U32();
  const std::string why = fields.Rest().substr(0, kMostText);
  return {rank < world_size ? static_cast<int>(rank) : RankLost::kUnknown, why};
}

std::string SilenceText(const ControlOptions& options) {
  return fmt::format("no heartbeat for {} s; the process is stopped, or the network is cut",
                     std::chrono::duration<double>(options.patience()).count());
}

int MillisecondsUntil(Connection::Clock::time_point time) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(time - Connection::Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

}  // namespace latte
