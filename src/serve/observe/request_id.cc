#include "src/serve/observe/request_id.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <sys/random.h>

#include "src/base/check.h"

namespace latte {
namespace {

constexpr size_t kMostBytes = 128;
constexpr size_t kSuffixDigits = 8;

}  // namespace

bool IsRequestId(std::string_view given) {
  if (given.empty() || given.size() > kMostBytes) return false;
  return std::all_of(given.begin(), given.end(), [](char c) {
    return c > 0x20 && c < 0x7f && c != '"' && c != '\'' && c != '`' && c != '\\';
  });
}

std::string NewRequestId() {
  std::array<uint64_t, 2> words;
  // So few bytes come at once, once the machine has started (getrandom(2)).
  LATTE_CHECK(getrandom(words.data(), sizeof words, 0) == sizeof words, "no random numbers");
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

std::string RequestIdFor(std::string_view given) {
  return IsRequestId(given) ? std::string(given) : NewRequestId();
}

TakenId RequestIds::Take(std::string_view given) {
  const std::string wanted = RequestIdFor(given);
  auto id = std::make_unique<std::string>(wanted);
  {
    const std::lock_guard lock(taken_->mutex);
    while (taken_->ids.contains(*id))
      *id = fmt::format("{}-{}", wanted.substr(0, kMostBytes - 1 - kSuffixDigits),
                        NewRequestId().substr(0, kSuffixDigits));
    taken_->ids.insert(*id);
  }
  // If there is no memory for the pointer's counters, it calls this too.
  const auto release = [taken = taken_](const std::string* text) {
    const std::unique_ptr<const std::string> owned(text);
    const std::lock_guard lock(taken->mutex);
    taken->ids.erase(*text);
  };
  return TakenId(id.release(), release);
}

size_t RequestIds::size() const {
  const std::lock_guard lock(taken_->mutex);
  return taken_->ids.size();
}

}  // namespace latte
