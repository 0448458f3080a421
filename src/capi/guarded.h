// The common wrapper of all functions of the C API: errors, exceptions, null pointers, buffers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "latte/latte.h"
#include "latte/status.h"

#include "src/capi/convert.h"
#include "src/capi/sized.h"

namespace latte::capi {

// Writes code and message, cut between code points, unless `error` is null. Returns `code`.
latte_code Tell(latte_error* error, latte_code code, std::string_view message);

// Runs `call`, which returns a Status, and tells its error, or what it threw.
template <class Call>
latte_code Guarded(latte_error* error, Call call) noexcept {
  try {
    if (error != nullptr && !CheckSize<latte_error>(error->size, "latte_error"))
      return LATTE_INVALID_ARGUMENT;
    const Status status = call();
    return status ? Tell(error, LATTE_OK, "")
                  : Tell(error, ToC(status.error().code), status.error().message);
  } catch (const std::bad_alloc&) {
    return Tell(error, LATTE_EXHAUSTED, "out of memory: an allocation failed");
  } catch (const std::exception& thrown) {
    return Tell(error, LATTE_INTERNAL, thrown.what());
  } catch (...) {
    return Tell(error, LATTE_INTERNAL, "something that is no std::exception was thrown");
  }
}

// Errors: kInvalidArgument naming the argument.
[[nodiscard]] Status NotNull(const void* pointer, std::string_view name);
// 0 or 1. Errors: as NotNull.
[[nodiscard]] Result<bool> ReadFlag(int32_t value, std::string_view name);
// From now; above a day: a day. Errors: kInvalidArgument for a negative time.
[[nodiscard]] Result<std::chrono::steady_clock::time_point> Deadline(int64_t timeout_ms);
// The bytes that a text of the caller names; they are not copied. Errors: kInvalidArgument naming
// the argument.
[[nodiscard]] Result<std::string_view> ReadText(latte_text text, std::string_view name);
// Errors: kInvalidArgument for a count above 2^30, and for a null address with a count.
[[nodiscard]] Result<std::span<const int32_t>> ReadIds(const int32_t* ids, size_t count,
                                                       std::string_view name);

// Copies as much of `values` as there is room for, and tells how many there are.
template <class T>
[[nodiscard]] Status Fill(std::span<const T> values, T* to, size_t capacity, size_t* count) {
  LATTE_RETURN_IF_ERROR(NotNull(count, "count"));
  if (capacity > 0) LATTE_RETURN_IF_ERROR(NotNull(to, "buffer"));
  *count = values.size();
  std::copy_n(values.begin(), std::min(capacity, values.size()), to);
  return {};
}

}  // namespace latte::capi
