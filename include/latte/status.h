// Errors are values: the one error vocabulary of the library.
//
// A function that can fail because of its caller or its environment returns Result<T> (or Status).
// A bug in Latte aborts through LATTE_CHECK (src/base/check.h) instead. A message says what was
// expected, what was found, where, and what to do about it.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace latte {
inline namespace v0_2 {

enum class Code {
  kOk,               // HTTP 200, exit 0; never carried by an Error
  kInvalidArgument,  // 400 / 2: the request, flag or option is wrong
  kNotFound,         // 404 / 2: the named file, model or tensor does not exist
  kUnsupported,      // 400 / 2: understood, but this build or version does not do it
  kCorrupt,          // 422 / 2: a file contradicts its format or its config
  kExhausted,        // 429 / 1: memory, pages or queue places ran out
  kCancelled,        // 499 / 1: the caller gave up
  kUnavailable,      // 503 / 1: a device, peer or service is not available now
  kInternal,         // 500 / 3: a bug in Latte that could be reported instead of aborting
};

std::string_view CodeName(Code code);  // "corrupt"
int HttpStatus(Code code);
int ExitCode(Code code);

struct Error {
  Code code = Code::kInternal;
  std::string message;  // one line
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

std::string ToString(const Error& error);  // "corrupt: model.safetensors: …"

// Messages quote names and values from files and requests, which may be megabytes long. The middle
// of a message above 2,000 bytes is cut out. ToString cuts, too, because callers may add paths.
tl::unexpected<Error> Fail(Code code, std::string message);

inline tl::unexpected<Error> InvalidArgument(std::string m) {
  return Fail(Code::kInvalidArgument, std::move(m));
}
inline tl::unexpected<Error> NotFound(std::string m) { return Fail(Code::kNotFound, std::move(m)); }
inline tl::unexpected<Error> Unsupported(std::string m) {
  return Fail(Code::kUnsupported, std::move(m));
}
inline tl::unexpected<Error> Corrupt(std::string m) { return Fail(Code::kCorrupt, std::move(m)); }
inline tl::unexpected<Error> Exhausted(std::string m) {
  return Fail(Code::kExhausted, std::move(m));
}
inline tl::unexpected<Error> Internal(std::string m) { return Fail(Code::kInternal, std::move(m)); }

}  // namespace v0_2
}  // namespace latte

#define LATTE_CONCAT_INNER(a, b) a##b
#define LATTE_CONCAT(a, b) LATTE_CONCAT_INNER(a, b)

// Returns the error of `expr` (a Status or Result) from the function, if there is one.
#define LATTE_RETURN_IF_ERROR(expr)                                              \
  do {                                                                           \
    auto&& latte_status_ = (expr);                                               \
    if (!latte_status_) return tl::unexpected(std::move(latte_status_).error()); \
  } while (false)

// Declares or assigns `lhs` from a Result, or returns its error from the function.
#define LATTE_ASSIGN_OR_RETURN(lhs, expr)                                            \
  auto LATTE_CONCAT(latte_result_, __LINE__) = (expr);                               \
  if (!LATTE_CONCAT(latte_result_, __LINE__))                                        \
    return tl::unexpected(std::move(LATTE_CONCAT(latte_result_, __LINE__)).error()); \
  lhs = std::move(*LATTE_CONCAT(latte_result_, __LINE__))
