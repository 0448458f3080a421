// Encodes rows of f32 in a quantised format and computes the quantisation error.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/jobs/convert/quant_scheme.h"

namespace latte {

// The stored bytes of some rows of a matrix, in the order of PlanMatrix.
struct EncodedRows {
  std::vector<std::byte> values;
  std::vector<std::byte> scales;
  double squared_error = 0;  // Σ (w − stored)²
  double squared = 0;        // Σ w²
};

// Encodes consecutive rows [rows, columns]; for fp8 they begin at a multiple of kF8Block.
//
// fp8: scale = max|w| / 448 of a block, values rounded to the nearest E4M3.
// int8 and int4, codes from −2^(b−1) to 2^(b−1) − 1: the smallest bf16 scale for which every value,
// including the largest, lies within scale/2 of a code.
// The caller refuses values that are not finite.
// Requires: FitsGroups(scheme, columns).
EncodedRows EncodeRows(const QuantScheme& scheme, std::span<const float> w, int64_t columns);

}  // namespace latte
