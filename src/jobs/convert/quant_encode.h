// Rows of f32 → the bytes of a quantised format, with the error that this makes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/jobs/convert/quant_scheme.h"

namespace latte {

// What is stored of some rows of a matrix, in the order of PlanMatrix.
struct EncodedRows {
  std::vector<std::byte> values;
  std::vector<std::byte> scales;
  double squared_error = 0;  // Σ (w − stored)²
  double squared = 0;        // Σ w²
};

// Encodes consecutive rows [rows, columns]; for fp8 they begin at a multiple of kF8Block.
//
// fp8: scale = max|w| / 448 of a block, values to the nearest E4M3.
// int8 and int4, codes from −2^(b−1) to 2^(b−1) − 1: the smallest bf16 scale for which every value
// lies within scale/2 of a code, the largest values included.
// Values that are not finite are the caller's to refuse. Requires: FitsGroups(scheme, columns).
EncodedRows EncodeRows(const QuantScheme& scheme, std::span<const float> w, int64_t columns);

}  // namespace latte
