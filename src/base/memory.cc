#include "src/base/memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include <sys/mman.h>

namespace latte {
namespace {

// The number that follows `key` at the beginning of a line.
std::optional<int64_t> Value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(key)) {
      const size_t digit = line.find_first_of("0123456789", key.size());
      int64_t value = 0;
      if (digit == std::string_view::npos ||
          std::from_chars(line.data() + digit, line.data() + line.size(), value).ec != std::errc())
        return std::nullopt;
      return value;
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

// Files of the kernel have no size until they are read.
std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the control group leaves: file pages that it could drop do not count as used.
std::optional<int64_t> GroupLeaves(const std::string& root) {
  const std::string group = root + "/sys/fs/cgroup/";
  const std::optional<int64_t> most = Value(Read(group + "memory.max"), "");
  const std::optional<int64_t> used = Value(Read(group + "memory.current"), "");
  if (!most || !used) return std::nullopt;
  const int64_t droppable = Value(Read(group + "memory.stat"), "inactive_file ").value_or(0);
  return std::max<int64_t>(0, *most - *used + droppable);
}

}  // namespace

int64_t AvailableMemory(const std::string& root) {
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  constexpr int64_t kKib = 1024;
  const std::optional<int64_t> kib = Value(Read(root + "/proc/meminfo"), "MemAvailable:");
  const int64_t system = kib && *kib < kUnknown / kKib ? *kib * kKib : kUnknown;
  const int64_t least = std::min(system, GroupLeaves(root).value_or(kUnknown));
  return least == kUnknown ? 0 : least;
}

void AnonymousMemory::Unmap::operator()(std::byte* at) const {
  munmap(at, static_cast<size_t>(bytes));
}

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
