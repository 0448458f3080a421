// Comparisons that report the first few differences.
#pragma once

#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/tensor/tensor.h"
#include "tests/conformance/support/guarded.h"

namespace latte {

// |got − want| ≤ bound(i, j, k) for every element; infinities must be equal, and NaN is not
// allowed.
template <class Bound>
::testing::AssertionResult Close(const TensorView& got, const TensorView& want,
                                 const Bound& bound) {
  for (int64_t i = 0; i < want.shape[0]; ++i)
    for (int64_t j = 0; j < (want.rank > 1 ? want.shape[1] : 1); ++j)
      for (int64_t k = 0; k < (want.rank > 2 ? want.shape[2] : 1); ++k) {
        const double g = static_cast<double>(GetValue(got, i, j, k));
        const double w = static_cast<double>(GetValue(want, i, j, k));
        if (g == w) continue;
        const double limit = bound(i, j, k);
        if (!std::isfinite(w) || !(std::abs(g - w) <= limit))
          return ::testing::AssertionFailure()
                 << fmt::format("at [{},{},{}]: {} instead of {}, off by {:.3g}, bound {:.3g}", i,
                                j, k, g, w, std::abs(g - w), limit);
      }
  return ::testing::AssertionSuccess();
}

// Equal bit for bit; views may have different strides.
inline ::testing::AssertionResult SameBits(const TensorView& got, const TensorView& want) {
  for (int64_t i = 0; i < want.shape[0]; ++i)
    for (int64_t j = 0; j < (want.rank > 1 ? want.shape[1] : 1); ++j)
      for (int64_t k = 0; k < (want.rank > 2 ? want.shape[2] : 1); ++k) {
        const float g = GetValue(got, i, j, k);
        const float w = GetValue(want, i, j, k);
        if (std::bit_cast<uint32_t>(g) != std::bit_cast<uint32_t>(w))
          return ::testing::AssertionFailure() << fmt::format(
                     "at [{},{},{}]: {} instead of {}, not the same bits", i, j, k, g, w);
      }
  return ::testing::AssertionSuccess();
}

}  // namespace latte
