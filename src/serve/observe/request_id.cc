#include "src/serve/observe/request_id.h"

#include <algorithm>

#include <fmt/format.h>

namespace latte {
namespace {

constexpr size_t kMostBytes = 128;

bool IsIdChar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("-_.:/+=@").find(c) != std::string_view::npos;
}

}  // namespace

bool IsRequestId(std::string_view text) {
  return !text.empty() && text.size() <= kMostBytes &&
         std::all_of(text.begin(), text.end(), IsIdChar);
}

RequestIds::RequestIds() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device(), device(), device()};
  random_.seed(seed);
}

std::string RequestIds::Choose(std::string_view given) {
  if (IsRequestId(given)) return std::string(given);
  const uint64_t high = random_();
  return fmt::format("{:016x}{:016x}", high, random_());
}

}  // namespace latte
