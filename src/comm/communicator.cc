#include "src/comm/communicator.h"

#include <vector>

namespace latte {

RankLost::RankLost(int rank, const std::string& why) : std::runtime_error(why), rank_(rank) {}

void Communicator::AllGatherEqual(std::span<const std::byte> mine, std::span<std::byte> all) {
  AllGather(mine, std::vector(static_cast<size_t>(size()), std::ssize(mine)), all);
}

}  // namespace latte
