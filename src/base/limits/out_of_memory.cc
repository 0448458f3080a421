#include "src/base/limits/out_of_memory.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <sys/resource.h>

#include "src/base/limits/device_error.h"

namespace latte {
namespace {

constexpr std::string_view kShort = "out of memory";  // fits into a string without allocation

// " under a limit of 512 MiB on address space (ulimit -v)", if there is such a limit.
std::string AddressSpaceLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format(" under a limit of {} MiB on address space (ulimit -v)", limit.rlim_cur >> 20);
}

Error MemoryError(std::string_view what) {
  return {Code::kExhausted,
          fmt::format("{}{}; free memory, raise the limit, or use less: a smaller copy of the "
                      "model, a shorter prompt or context, fewer tokens per step, a smaller cache, "
                      "fewer threads",
                      what, AddressSpaceLimit())};
}

Error SystemError(const std::system_error& error) {
  const std::error_code code = error.code();
  if (code == std::errc::not_enough_memory) return MemoryError("out of memory");
  if (code == std::errc::resource_unavailable_try_again)
    return {Code::kExhausted,
            "cannot start a thread: the process, its user or its control group has reached its "
            "limit; raise the limit (ulimit -u, pids.max), or end other programs"};
  return {Code::kInternal, error.what()};
}

Error DescribeThrown(const std::exception& thrown) {
  if (const auto* known = dynamic_cast<const OutOfMemory*>(&thrown))
    return MemoryError(known->what());
  if (dynamic_cast<const std::bad_alloc*>(&thrown) != nullptr)
    return MemoryError("out of memory: an allocation failed");
  if (const auto* system = dynamic_cast<const std::system_error*>(&thrown))
    return SystemError(*system);
  if (const auto* device = dynamic_cast<const DeviceError*>(&thrown))
    return {device->code(), device->what()};
  return {Code::kInternal, thrown.what()};
}

}  // namespace

OutOfMemory::OutOfMemory(int64_t bytes, std::string_view what_for) noexcept : text_{} {
  constexpr size_t kMostText = sizeof(text_) - 64;
  fmt::format_to_n(text_, sizeof(text_) - 1, "out of memory: cannot allocate {} bytes for {}",
                   bytes, what_for.substr(0, std::min(what_for.size(), kMostText)));
}

Error ErrorOf(const std::exception& thrown) noexcept {
  try {
    return DescribeThrown(thrown);
  } catch (const std::exception&) {
    return {Code::kExhausted, std::string(kShort)};
  }
}

}  // namespace latte
