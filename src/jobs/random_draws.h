// Draws from distributions, equal on every machine up to the rounding of the mathematical library.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "src/base/random.h"

namespace latte {

// Uniform in (0, 1).
inline double DrawUniform(Random& random) {
  return (static_cast<double>(random.Below(uint64_t{1} << 53)) + 0.5) * 0x1p-53;
}

// Two independent uniform numbers make a normal one (Box and Muller 1958).
inline double DrawNormal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(DrawUniform(random)));
  return radius * std::cos(2 * std::numbers::pi * DrawUniform(random));
}

inline std::vector<int32_t> RandomTokens(int64_t count, int64_t vocab, uint64_t stream = 0) {
  Random random(1, stream);
  std::vector<int32_t> out(static_cast<size_t>(count));
  for (int32_t& token : out)
    token = static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocab)));
  return out;
}

}  // namespace latte
