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

std::string RequestIds::Take(std::string_view given) {
  std::string id = IsRequestId(given) ? std::string(given) : NewRequestId();
  while (!taken_.insert(id).second)
    id = fmt::format("{}-{}", given.substr(0, kMostBytes - 1 - kSuffixDigits),
                     NewRequestId().substr(0, kSuffixDigits));
  return id;
}

}  // namespace latte
