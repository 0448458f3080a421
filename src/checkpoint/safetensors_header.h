// The header of one safetensors file, checked by every rule of the format (safetensors.h names
// them) before any of its numbers is used. Reads nothing but the bytes it is given.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "src/checkpoint/safetensors.h"

namespace latte {

using NamedTensor = std::pair<std::string, StoredTensor>;

// All tensors of a file whose whole content is `bytes`, in the order of their data. `path` is for
// messages; file_index stays 0.
// Errors: kCorrupt naming path, tensor and rule.
[[nodiscard]] Result<std::vector<NamedTensor>> ParseSafetensorsHeader(
    std::span<const std::byte> bytes, const std::string& path);

}  // namespace latte
