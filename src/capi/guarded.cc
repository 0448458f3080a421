#include "src/capi/guarded.h"

#include <algorithm>
#include <cstring>

namespace latte::capi {
namespace {

constexpr size_t kMostItems = size_t{1} << 30;  // bytes of a text, ids

// Cuts `text` to at most `bytes`, not within a code point.
std::string_view Cut(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

Status CheckItems(const void* data, size_t count, std::string_view name) {
  if (count > kMostItems)
    return InvalidArgument(std::string(name) + ": expected at most " + std::to_string(kMostItems) +
                           ", found " + std::to_string(count));
  return count > 0 ? NotNull(data, name) : Status();
}

}  // namespace

latte_code Tell(latte_error* error, latte_code code, std::string_view message) {
  if (error == nullptr) return code;
  const std::string_view kept = Cut(message, sizeof(error->message) - 1);
  error->code = code;
  std::fill(std::begin(error->message), std::end(error->message), '\0');
  std::copy(kept.begin(), kept.end(), error->message);
  return code;
}

Status NotNull(const void* pointer, std::string_view name) {
  if (pointer != nullptr) return {};
  return InvalidArgument(std::string(name) + ": expected an address, found NULL");
}

Result<bool> ReadFlag(int32_t value, std::string_view name) {
  if (value == 0 || value == 1) return value == 1;
  return InvalidArgument(std::string(name) + ": expected 0 or 1, found " + std::to_string(value));
}

Result<std::chrono::steady_clock::time_point> Deadline(int64_t timeout_ms) {
  if (timeout_ms < 0)
    return InvalidArgument("timeout_ms: expected 0 or more, found " + std::to_string(timeout_ms));
  constexpr std::chrono::milliseconds kDay = std::chrono::hours(24);
  return std::chrono::steady_clock::now() + std::min(std::chrono::milliseconds(timeout_ms), kDay);
}

Result<std::string_view> ReadText(latte_text text, std::string_view name) {
  if (text.bytes == SIZE_MAX) {
    if (text.data == nullptr) return std::string_view();
    return std::string_view(text.data, std::strlen(text.data));
  }
  LATTE_RETURN_IF_ERROR(CheckItems(text.data, text.bytes, name));
  return std::string_view(text.data, text.bytes);
}

Result<std::span<const int32_t>> ReadIds(const int32_t* ids, size_t count, std::string_view name) {
  LATTE_RETURN_IF_ERROR(CheckItems(ids, count, name));
  return std::span(ids, count);
}

}  // namespace latte::capi
