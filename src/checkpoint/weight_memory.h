// Checks whether the weights of a checkpoint fit in memory, and suggests a smaller model if not.
// This is a warning, never an error: mapped weights that do not fit are read from disk on each use.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/config/model_config.h"

namespace latte {

// The memory that the mapped files occupy when all of them is used, and the copies that loading
// makes of W_UK and W_UV of GGUF files. Files in a memory file system (tmpfs) are in memory already
// and need no more.
int64_t WeightMemory(const Checkpoint& checkpoint);

// The memory of the weights on a device, which holds copies of all of them: of the decoder and,
// with `drafts`, of the drafting layers. Each matrix begins at a multiple of 256 bytes.
int64_t WeightMemoryOnDevice(const ModelConfig& config, const Checkpoint& checkpoint, bool drafts);

// The memory available (memory.h) to the weights, which are mapped but not read yet, and to
// everything else.
std::optional<int64_t> MemoryForWeights(const ModelConfig& config, const Checkpoint& checkpoint);

// The way to get a smaller copy of the model: words that follow "use ".
std::string SmallerModel(const ModelConfig& config);

// A warning if the weights are larger than the available memory; nullopt if they fit, or if the
// available memory is unknown.
std::optional<std::string> LargerThanMemory(const ModelConfig& config, int64_t weight_bytes,
                                            std::optional<int64_t> available_bytes);

}  // namespace latte
