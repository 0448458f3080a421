// Finds the tensors that represent one matrix of a checkpoint, and their required shapes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/checkpoint/config/quant_config.h"

namespace latte {

// The stored form in `tensors` of the matrix `name` ("….weight") of shape [N, K], or of a stack
// [E, N, K]: that of the config's schemes whose tensor of values exists, and if there are several,
// the first whose shapes fit. A matrix in no known form counts as plain. The caller checks that the
// tensors exist.
StoredMatrix FindMatrix(const QuantConfig& quant, const std::string& name,
                        const std::vector<int64_t>& shape, const StoredTensors& tensors);

}  // namespace latte
