// Whether the weights of a checkpoint fit memory, and what to do if they do not. Nothing is refused
// here: mapped weights that do not fit are read from disk whenever they are used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/safetensors.h"

namespace latte {

// Bytes of memory that the mapped files fill when all of them is used. What memory holds already,
// because the files lie in a file system of memory (tmpfs), needs no more.
int64_t WeightMemory(const Checkpoint& checkpoint);

// How such a model gets smaller: words that follow "use ".
std::string_view SmallerModel(const ModelConfig& config);

// A warning for weights that are larger than what is available. None when they fit, or when nobody
// knows what is available.
std::optional<std::string> LargerThanMemory(const ModelConfig& config, int64_t weight_bytes,
                                            std::optional<int64_t> available_bytes);

}  // namespace latte
