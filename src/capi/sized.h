// Structs of the C API that grow: the caller's may be older or newer than the library's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "latte/latte.h"
#include "latte/status.h"

namespace latte::capi {

// A larger `size` is taken for memory that was never set.
inline constexpr size_t kMaxStructBytes = 4096;

// Bytes of a struct in its first version: to the end of what was its last member then. These never
// change; a struct's size is a multiple of its alignment in every version, so that no new member
// falls on what was padding.
template <class T>
inline constexpr size_t kFirstBytes = 0;
template <>
inline constexpr size_t kFirstBytes<latte_error> = offsetof(latte_error, message) +
                                                   sizeof(latte_error::message);
template <>
inline constexpr size_t kFirstBytes<latte_engine_options> =
    offsetof(latte_engine_options, prefix_cache) + sizeof(latte_engine_options::prefix_cache);
template <>
inline constexpr size_t kFirstBytes<latte_request> = offsetof(latte_request, echo) +
                                                     sizeof(latte_request::echo);
template <>
inline constexpr size_t kFirstBytes<latte_stats> = offsetof(latte_stats, forward_seconds) +
                                                   sizeof(latte_stats::forward_seconds);
template <>
inline constexpr size_t kFirstBytes<latte_service_options> = offsetof(latte_service_options,
                                                                      context) +
                                                             sizeof(latte_service_options::context);
template <>
inline constexpr size_t kFirstBytes<latte_mla_decode> = offsetof(latte_mla_decode, scale) +
                                                        sizeof(latte_mla_decode::scale);
template <>
inline constexpr size_t kFirstBytes<latte_mla_prefill> = offsetof(latte_mla_prefill, scale) +
                                                         sizeof(latte_mla_prefill::scale);

// Errors: kInvalidArgument for a size that no version of T has. Such a struct is not touched.
template <class T>
[[nodiscard]] Status CheckSize(size_t size, std::string_view name) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, size) == 0);
  static_assert(kFirstBytes<T> >= sizeof(size_t));
  if (size >= kFirstBytes<T> && size <= kMaxStructBytes) return {};
  return InvalidArgument(std::string(name) + ".size: expected sizeof(" + std::string(name) +
                         "), which is " + std::to_string(sizeof(T)) + ", found " +
                         std::to_string(size) + "; set it before the call");
}

// The caller's struct; members that it is too old to have come from `defaults`.
// Errors: kInvalidArgument for null and of CheckSize; kUnsupported where a member that only a newer
// library knows is set.
template <class T>
[[nodiscard]] Result<T> ReadSized(const T* from, const T& defaults, std::string_view name) {
  if (from == nullptr)
    return InvalidArgument(std::string(name) + ": expected a struct, found NULL");
  LATTE_RETURN_IF_ERROR(CheckSize<T>(from->size, name));
  const size_t size = from->size;
  T read = defaults;
  std::memcpy(&read, from, std::min(size, sizeof(T)));
  read.size = sizeof(T);
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (size_t i = sizeof(T); i < size; ++i)
    if (bytes[i] != 0)
      return Unsupported(std::string(name) +
                         ": a member that this library does not know is set; use a newer library");
  return read;
}

// Writes what the caller's struct has room for; members that only a newer library knows become 0.
// Errors: kInvalidArgument for null and of CheckSize.
template <class T>
[[nodiscard]] Status WriteSized(T* to, size_t size, const T& value, std::string_view name) {
  if (to == nullptr) return InvalidArgument(std::string(name) + ": expected a struct, found NULL");
  LATTE_RETURN_IF_ERROR(CheckSize<T>(size, name));
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &value, std::min(size, sizeof(T)));
  to->size = size;
  return {};
}

}  // namespace latte::capi
