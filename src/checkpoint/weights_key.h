// A key that identifies the weights of a checkpoint.
#pragma once

#include <string>

#include "latte/status.h"

namespace latte {

// A hash, in hexadecimal digits, of config.json or the metadata of a GGUF file, of the names,
// shapes and offsets of all tensors, and of samples of every weight file. Weights are not read in
// full: two checkpoints that differ only in numbers between the samples have the same key. Not for
// security.
// Errors: kNotFound without config.json; of Checkpoint::Open.
[[nodiscard]] Result<std::string> WeightsKey(const std::string& dir);

}  // namespace latte
