// Parses the header of a safetensors file and checks every rule of the format (see safetensors.h)
// before it uses any number. Reads only the bytes that it is given.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "latte/status.h"

#include "src/checkpoint/container/tensor_files.h"

namespace latte {

using NamedTensor = std::pair<std::string, StoredTensor>;

// All tensors of a file with the content `bytes`, in the order of their data. `path` is used in
// messages; file_index stays 0.
// Errors: kCorrupt naming path, tensor and rule.
[[nodiscard]] Result<std::vector<NamedTensor>> ParseSafetensorsHeader(
    std::span<const std::byte> bytes, const std::string& path);

}  // namespace latte
