// LATTE_CHECK: a broken invariant aborts with file, line and values. No file and no request can
// trigger one.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

namespace latte {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* expr,
                                     const std::string& detail) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s %s\n", file, line, expr, detail.c_str());
  std::abort();
}

}  // namespace latte

// LATTE_CHECK(refs > 0, "page {} has {} references", id, refs);  the text is optional.
#define LATTE_CHECK(expr, ...)                                                        \
  do {                                                                                \
    if (!(expr)) [[unlikely]]                                                         \
      ::latte::CheckFailed(__FILE__, __LINE__, #expr, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
