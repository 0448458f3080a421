#include "src/comm/local_ranks.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include <unistd.h>

#include "src/base/limits/control_group.h"

namespace latte {
namespace {

// Ends with at least one zero.
void CopyText(const std::string& text, std::array<char, 64>& out) {
  text.copy(out.data(), out.size() - 1);
}

// The processors of `own` on the memory nodes of `part`; empty if that is all of them, or none.
std::vector<int> OnNodesOf(const std::vector<int>& part, const std::vector<Processor>& own) {
  std::set<int> nodes;
  for (const Processor& p : own)
    if (std::find(part.begin(), part.end(), p.id) != part.end()) nodes.insert(p.node);
  std::vector<int> out;
  for (const Processor& p : own)
    if (nodes.contains(p.node)) out.push_back(p.id);
  if (out.size() == own.size()) out.clear();
  return out;
}

}  // namespace

RankPlace RankPlace::OfThisThread() {
  RankPlace out;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  CopyText(boot, out.machine);
  std::array<char, 64> host = {};
  gethostname(host.data(), host.size() - 1);
  out.host = host;
  for (const Processor& p : UsableProcessors()) {
    const auto id = static_cast<size_t>(p.id);
    if (id / 64 < out.processors.size()) out.processors[id / 64] |= uint64_t{1} << (id % 64);
  }
  return out;
}

ProcessorPart DivideProcessors(std::span<const RankPlace> all, int rank,
                               const std::vector<Processor>& own,
                               std::optional<double> group_share) {
  const RankPlace& mine = all[static_cast<size_t>(rank)];
  int index = 0;
  int count = 0;
  int of_host = 0;
  for (size_t other = 0; other < all.size(); ++other) {
    if (all[other].machine != mine.machine) continue;
    if (all[other].host == mine.host) ++of_host;
    if (all[other].processors != mine.processors) continue;
    if (other < static_cast<size_t>(rank)) ++index;
    ++count;
  }
  ProcessorPart out;
  const std::vector<int> part = PartOfProcessors(own, index, count);
  const auto processors =
      static_cast<int>(part.empty() ? std::ssize(own) / count : std::ssize(part));
  if (count > 1) out.processors = OnNodesOf(part, own);
  if (group_share) *group_share /= of_host;
  out.threads = ThreadsFor(processors, group_share);
  return out;
}

int TakePartOfProcessors(Communicator& world) {
  const RankPlace mine = RankPlace::OfThisThread();
  std::vector<RankPlace> all(static_cast<size_t>(world.size()));
  world.AllGatherEqual(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  const ProcessorPart part =
      DivideProcessors(all, world.rank(), UsableProcessors(), GroupProcessors());
  if (!part.processors.empty()) BindThread(part.processors);
  return part.threads;
}

}  // namespace latte
