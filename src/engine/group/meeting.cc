#include "src/engine/group/meeting.h"

#include <algorithm>
#include <span>
#include <utility>

namespace latte {
namespace {

std::pair<GroupCall, int64_t> Order(const WantedCall& wanted) {
  return {wanted.call, wanted.layer};
}

}  // namespace

AgreedCall Meeting::Ask(const WantedCall& mine) {
  std::vector<WantedCall> all(static_cast<size_t>(leaders_->size()));
  leaders_->AllGatherEqual(std::as_bytes(std::span(&mine, 1)),
                           std::as_writable_bytes(std::span(all)));
  const WantedCall first = *std::ranges::min_element(all, {}, Order);
  AgreedCall out{first.call, first.layer, Order(mine) == Order(first), {}};
  for (const WantedCall& wanted : all)
    out.group_tokens.push_back(Order(wanted) == Order(first) ? wanted.tokens : 0);
  return out;
}

}  // namespace latte
