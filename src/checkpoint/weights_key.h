// What tells one checkpoint from another.
#pragma once

#include <string>

#include "latte/status.h"

namespace latte {

// A hash, as hexadecimal digits, of config.json, of all tensors' names, shapes and places, and of
// bytes spread over every weight file. Weights of gigabytes are not read in full: a checkpoint that
// differs from another in few numbers, all of them between the places that are looked at, is taken
// for it. Not for security. Errors: kNotFound without config.json; of Checkpoint::Open.
[[nodiscard]] Result<std::string> WeightsKey(const std::string& dir);

}  // namespace latte
