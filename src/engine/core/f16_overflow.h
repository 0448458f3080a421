// Detects overflows of f16 arithmetic: an overflow becomes an infinity, which reaches the hidden
// states as an infinity or as a NaN.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "latte/status.h"

namespace latte {

// `whose` says whose values they are.
inline tl::unexpected<Error> F16Overflow(std::string_view whose) {
  return Unsupported(
      fmt::format("f16 arithmetic: expected values up to 65504, the largest that f16 has, but "
                  "values of {} pass "
                  "it; use --dtype bf16 or f32",
                  whose));
}

}  // namespace latte
