// An overflow of f16 arithmetic becomes an infinity, which reaches the hidden state as such or as a
// NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "latte/status.h"

#include "src/tensor/dtype.h"

namespace latte {

// The place of the first value of a hidden state that has overflowed; none unless `dtype` is f16.
inline std::optional<int64_t> FindOverflow(DType dtype, std::span<const float> h) {
  if (dtype != DType::kF16) return std::nullopt;
  const auto bad = std::find_if(h.begin(), h.end(), [](float x) { return !std::isfinite(x); });
  if (bad == h.end()) return std::nullopt;
  return bad - h.begin();
}

// `whose`: "token 3".
inline Error OverflowError(const std::string& whose) {
  return {Code::kUnsupported,
          "f16 arithmetic: expected values up to 65504, the largest that f16 has, but those of " +
              whose + " pass it; use --dtype bf16 or f32"};
}

}  // namespace latte
