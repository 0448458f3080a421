#include "src/base/limits/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/limits/control_group.h"

namespace latte {
namespace {

// A value of /proc/meminfo, in bytes: "MemAvailable:   60 kB".
std::optional<int64_t> SystemMemory(const std::string& root, const std::string& key) {
  constexpr int64_t kKib = 1024;
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const size_t digit = std::min(line.find_first_not_of(' ', key.size()), line.size());
    int64_t kib = 0;
    const auto parsed = std::from_chars(line.data() + digit, line.data() + line.size(), kib);
    if (parsed.ec != std::errc() || kib < 0 || kib > std::numeric_limits<int64_t>::max() / kKib)
      return std::nullopt;
    return kib * kKib;
  }
  return std::nullopt;
}

std::optional<int64_t> Less(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

// What `ulimit -v` leaves of the address space of this process.
std::optional<int64_t> AddressSpaceLeft() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  if (!(statm >> pages)) return std::nullopt;
  const auto most = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
  return std::max<int64_t>(0, most - pages * sysconf(_SC_PAGESIZE));
}

}  // namespace

std::optional<int64_t> AvailableMemory(int64_t mapped_bytes, const std::string& root) {
  std::optional<int64_t> addresses = AddressSpaceLeft();
  if (addresses) *addresses += std::min(mapped_bytes, INT64_MAX - *addresses);
  const std::optional<int64_t> here = Less(ReadGroupMemory(root).left, addresses);
  return Less(SystemMemory(root, "MemAvailable:"), here);
}

std::optional<int64_t> TotalMemory(const std::string& root) {
  return Less(SystemMemory(root, "MemTotal:"), ReadGroupMemory(root).limit);
}

std::string MemoryText(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return bytes < 1'000'000'000 ? fmt::format("{:.2f} MB", value / 1e6)
                               : fmt::format("{:.2f} GB", value / 1e9);
}

void AnonymousMemory::Free(std::byte* at, int64_t bytes) { munmap(at, static_cast<size_t>(bytes)); }

std::optional<AnonymousMemory> AnonymousMemory::Reserve(int64_t bytes, PageSize pages) {
  if (bytes <= 0) return std::nullopt;
  void* at = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return std::nullopt;
  // A wish: small pages do as well.
  if (pages == PageSize::kHuge) madvise(at, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return AnonymousMemory(static_cast<std::byte*>(at), bytes);
}

}  // namespace latte
