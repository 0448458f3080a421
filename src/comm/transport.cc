#include "src/comm/transport.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace latte {

RankLost SilentRanks(std::span<const int> from, const ExchangeCall& call) {
  const double seconds = std::chrono::duration<double>(call.deadline).count();
  return {from.empty() ? RankLost::kUnknown : from.front(),
          fmt::format("rank{} {} did not take part within {} s, the deadline of {} of {} ranks; "
                      "look there for the cause",
                      from.size() == 1 ? "" : "s", fmt::join(from, ", "), seconds, call.what,
                      call.ranks)};
}

RankLost WrongLength(int from, int64_t expected, int64_t found, const ExchangeCall& call) {
  return {from,
          fmt::format("rank {} sent {} bytes where {} of {} ranks expects {}: the ranks do not "
                      "compute the same step",
                      from, found, call.what, call.ranks, expected)};
}

}  // namespace latte
