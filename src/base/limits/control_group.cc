#include "src/base/limits/control_group.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/strings.h"

namespace latte {
namespace {

// Empty when it cannot be read. Files of the kernel have no size until they are read, and files
// of a removed group fail only then.
std::string Read(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// The pieces between separators; empty ones are left out.
std::vector<std::string_view> FilledPieces(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::string_view piece = TakePiece(&text, separator);
    if (!piece.empty()) out.push_back(piece);
  }
  return out;
}

bool Names(std::string_view list, std::string_view controller) {
  const std::vector<std::string_view> names = FilledPieces(list, ',');
  return std::find(names.begin(), names.end(), controller) != names.end();
}

// A whole number that is not negative; anything else ("max", "-1", "12abc") is none.
std::optional<int64_t> Number(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<int64_t> ReadNumber(const std::string& path) { return Number(Read(path)); }

// The value of `key` in lines of "key value".
std::optional<int64_t> ValueOf(std::string_view stat, std::string_view key) {
  for (const std::string_view line : FilledPieces(stat, '\n')) {
    const std::vector<std::string_view> words = FilledPieces(line, ' ');
    if (words.size() == 2 && words[0] == key) return Number(words[1]);
  }
  return std::nullopt;
}

// Paths in mountinfo spell a space, a tab, a newline and a backslash as "\040" and so on.
std::string Unescape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    unsigned char value = 0;
    const bool escaped =
        text[0] == '\\' && text.size() >= 4 &&
        std::from_chars(text.data() + 1, text.data() + 4, value, 8).ptr == text.data() + 4;
    out += escaped ? static_cast<char>(value) : text[0];
    text.remove_prefix(escaped ? 4 : 1);
  }
  return out;
}

// A tree of groups that is mounted.
struct Mount {
  bool unified = false;  // version 2, where all controllers share one tree
  std::string group;     // at the mount point; names like the "0::" lines of /proc/self/cgroup
  std::string folder;
};

// Mounts that may hold the groups of `controller`. A line of mountinfo:
// "31 23 0:28 GROUP FOLDER rw,relatime shared:9 - cgroup2 cgroup2 rw"; names may be missing before
// the dash, and version 1 lists controllers at the end.
std::vector<Mount> Mounts(const std::string& root, std::string_view controller) {
  std::vector<Mount> out;
  const std::string mounts = Read(root + "/proc/self/mountinfo");
  for (const std::string_view line : FilledPieces(mounts, '\n')) {
    const std::vector<std::string_view> words = FilledPieces(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (dash - words.begin() < 6 || words.end() - dash < 4) continue;
    const bool unified = dash[1] == "cgroup2";
    if (!unified && !(dash[1] == "cgroup" && Names(dash[3], controller))) continue;
    out.push_back({unified, Unescape(words[3]), root + Unescape(words[4])});
  }
  return out;
}

// The group of this process in a tree. A line of /proc/self/cgroup: "4:cpu,cpuacct:/docker/1f" in
// version 1, "0::/docker/1f" in version 2.
std::optional<std::string> OwnGroup(const std::string& root, bool unified,
                                    std::string_view controller) {
  const std::string groups = Read(root + "/proc/self/cgroup");
  for (const std::string_view line : FilledPieces(groups, '\n')) {
    const size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    if (unified ? line.starts_with("0::") : Names(names, controller))
      return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// The names that lead from the group at a mount point to `own`; none: own does not lie there. In a
// namespace of its own a process sees its groups by paths from the namespace's root, and what lies
// above as "..". When a mount begins above that root, the names between are unknown: the group at
// the mount point is the innermost that can be read.
std::optional<std::vector<std::string_view>> PathBelow(std::string_view mounted,
                                                       std::string_view own) {
  const std::vector<std::string_view> top = FilledPieces(mounted, '/');
  const std::vector<std::string_view> path = FilledPieces(own, '/');
  const auto [top_rest, path_rest] =
      std::mismatch(top.begin(), top.end(), path.begin(), path.end());
  const auto unknown = [](std::string_view name) { return name == ".."; };
  if (top_rest != top.end())
    return std::all_of(top_rest, top.end(), unknown)
               ? std::optional(std::vector<std::string_view>())
               : std::nullopt;
  if (path_rest != path.end() && *path_rest == "..") return std::nullopt;
  return std::vector<std::string_view>(path_rest, path.end());
}

// The folders of a process's group and of those around it, innermost first.
struct Nest {
  bool unified = false;
  std::vector<std::string> folders;
};

std::vector<Nest> NestsOf(const std::string& root, std::string_view controller) {
  std::vector<Nest> out;
  for (const Mount& mount : Mounts(root, controller)) {
    const std::optional<std::string> own = OwnGroup(root, mount.unified, controller);
    if (!own) continue;
    auto path = PathBelow(mount.group, *own);
    if (!path) continue;
    Nest nest{mount.unified, {}};
    for (; !path->empty(); path->pop_back())
      nest.folders.push_back(fmt::format("{}/{}", mount.folder, fmt::join(*path, "/")));
    nest.folders.push_back(mount.folder);
    out.push_back(std::move(nest));
  }
  return out;
}

template <class T>
void Lower(std::optional<T>& least, std::optional<T> value) {
  if (value && (!least || *value < *least)) least = value;
}

std::optional<double> Quota(const std::string& folder, bool unified) {
  std::optional<int64_t> quota;
  std::optional<int64_t> period;
  if (unified) {
    const std::string text = Read(folder + "/cpu.max");
    const std::vector<std::string_view> words = FilledPieces(text, ' ');
    if (words.size() != 2) return std::nullopt;
    quota = Number(words[0]);
    period = Number(words[1]);
  } else {
    quota = ReadNumber(folder + "/cpu.cfs_quota_us");
    period = ReadNumber(folder + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// Weights are mapped, so their pages are charged to the group that reads them first. The kernel
// drops such pages when memory is short, as it does for what /proc/meminfo calls available.
GroupMemory MemoryOf(const std::string& folder, bool unified) {
  const std::string stat = Read(folder + "/memory.stat");
  GroupMemory out;
  if (unified) {
    Lower(out.limit, ReadNumber(folder + "/memory.max"));
    Lower(out.limit, ReadNumber(folder + "/memory.high"));
  } else {
    Lower(out.limit, ReadNumber(folder + "/memory.limit_in_bytes"));
    Lower(out.limit, ValueOf(stat, "hierarchical_memory_limit"));
  }
  if (!out.limit) return out;
  int64_t used =
      ReadNumber(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  // In version 1 names without "total_" leave inner groups out.
  for (const char* key : {"inactive_file", "active_file"}) {
    const std::string name = fmt::format("{}{}", unified ? "" : "total_", key);
    used -= std::min(used, ValueOf(stat, name).value_or(0));
  }
  out.left = std::max<int64_t>(0, *out.limit - used);
  return out;
}

}  // namespace

std::optional<double> GroupProcessors(const std::string& root) {
  std::optional<double> out;
  for (const Nest& nest : NestsOf(root, "cpu"))
    for (const std::string& folder : nest.folders) Lower(out, Quota(folder, nest.unified));
  return out;
}

GroupMemory ReadGroupMemory(const std::string& root) {
  GroupMemory out;
  for (const Nest& nest : NestsOf(root, "memory"))
    for (const std::string& folder : nest.folders) {
      // Before Linux 5.11 a group of version 1 could leave inner groups uncounted.
      const bool inner = folder == nest.folders.front();
      if (!inner && ReadNumber(folder + "/memory.use_hierarchy") == 0) break;
      const GroupMemory here = MemoryOf(folder, nest.unified);
      Lower(out.limit, here.limit);
      Lower(out.left, here.left);
    }
  return out;
}

}  // namespace latte
