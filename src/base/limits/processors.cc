#include "src/base/limits/processors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <tuple>

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/limits/control_group.h"

namespace latte {
namespace {

constexpr const char* kSystem = "/sys/devices/system";

std::vector<int> ReadList(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return ParseProcessorList(line);
}

// A processor of node 0.
Processor ReadProcessor(int id, const std::string& system) {
  const std::vector<int> siblings =
      ReadList(fmt::format("{}/cpu/cpu{}/topology/thread_siblings_list", system, id));
  const auto at = std::find(siblings.begin(), siblings.end(), id);
  if (at == siblings.end()) return {.id = id, .core = id};
  return {.id = id, .core = siblings.front(), .sibling = static_cast<int>(at - siblings.begin())};
}

}  // namespace

std::vector<int> ParseProcessorList(std::string_view text) {
  std::vector<int> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](int& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc() && value >= 0 && value < CPU_SETSIZE;
  };
  for (int first = 0; number(first);) {
    int last = first;
    if (at != end && *at == '-') {
      ++at;
      if (!number(last)) break;
    }
    for (int id = first; id <= last; ++id) out.push_back(id);
    if (at == end || *at != ',') break;
    ++at;
  }
  return out;
}

std::vector<Processor> PlacingOrder(const std::vector<int>& ids, const std::string& system) {
  std::vector<Processor> out;
  for (const int id : ids) out.push_back(ReadProcessor(id, system));
  for (const int node : ReadList(system + "/node/online"))
    for (const int id : ReadList(fmt::format("{}/node/node{}/cpulist", system, node)))
      for (Processor& p : out)
        if (p.id == id) p.node = node;
  std::stable_sort(out.begin(), out.end(),
                   [](const Processor& a, const Processor& b) { return a.sibling < b.sibling; });
  // The n-th of each node before the n+1-th of any.
  std::vector<std::pair<int, Processor>> turns;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto same_node = [&](const Processor& p) { return p.node == out[i].node; };
    const auto begin = out.begin();
    turns.emplace_back(std::count_if(begin, begin + static_cast<int64_t>(i), same_node), out[i]);
  }
  std::stable_sort(turns.begin(), turns.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.node) < std::pair(b.first, b.second.node);
  });
  for (size_t i = 0; i < out.size(); ++i) out[i] = turns[i].second;
  return out;
}

std::vector<int> PartOfProcessors(std::vector<Processor> processors, int index, int count) {
  const auto place = [](const Processor& p) { return std::tuple(p.node, p.core, p.sibling); };
  std::sort(processors.begin(), processors.end(),
            [&](const Processor& a, const Processor& b) { return place(a) < place(b); });
  std::vector<std::vector<int>> cores;
  for (size_t i = 0; i < processors.size(); ++i) {
    if (i == 0 || processors[i].core != processors[i - 1].core) cores.emplace_back();
    cores.back().push_back(processors[i].id);
  }
  std::vector<int> out;
  if (std::ssize(cores) < count) return out;
  const auto cut = [&](int part) {
    return cores.size() * static_cast<size_t>(part) / static_cast<size_t>(count);
  };
  for (size_t core = cut(index); core < cut(index + 1); ++core)
    out.insert(out.end(), cores[core].begin(), cores[core].end());
  return out;
}

std::vector<Processor> UsableProcessors() {
  std::vector<int> ids;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int id = 0; id < CPU_SETSIZE; ++id)
      if (CPU_ISSET(id, &set)) ids.push_back(id);
  if (ids.empty()) ids.push_back(0);
  return PlacingOrder(ids, kSystem);
}

int ThreadsFor(int processors, std::optional<double> share) {
  const double least = std::min<double>(processors, share.value_or(processors));
  return std::max(1, static_cast<int>(std::ceil(least)));
}

int DefaultThreads() {
  return ThreadsFor(static_cast<int>(UsableProcessors().size()), GroupProcessors());
}

void BindThread(const std::vector<int>& ids) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int id : ids) CPU_SET(id, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

bool InterleaveMemory() {
  const std::vector<int> nodes = ReadList(fmt::format("{}/node/has_memory", kSystem));
  if (nodes.size() < 2) return true;
  unsigned long mask[CPU_SETSIZE / (8 * sizeof(unsigned long))] = {};
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  for (const int node : nodes)
    mask[static_cast<size_t>(node) / kBits] |= 1ul << (static_cast<size_t>(node) % kBits);
  return syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, mask, CPU_SETSIZE) == 0;
}

}  // namespace latte
