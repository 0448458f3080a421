// The metadata of a GGUF model as the config.json that the same model has in a Hugging Face folder,
// so that one parser (model_config.h) checks both.
//
// Files written by older programs lack constants. If the shape of a model determines a constant, it
// is taken from there and listed in ModelConfig::assumed. Otherwise the model is refused.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "latte/status.h"

#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/formats/common/weight_format.h"
#include "src/checkpoint/gguf/gguf_metadata.h"

namespace latte {

// The stored bytes of a tensor of the model.
using GgufTensorBytes = std::function<std::span<const std::byte>(const StoredTensor&)>;

// The config of a model with these metadata and tensors (gguf.h); of MiniCPM3 two tensors are read.
// Errors: kUnsupported naming an architecture, a rule of routing or a scaling that is not read;
// kCorrupt naming the key that is missing or wrong; of ParseModelConfig.
[[nodiscard]] Result<ModelConfig> ParseGgufConfig(const GgufMetadata& metadata,
                                                  const StoredTensors& tensors,
                                                  const GgufTensorBytes& bytes);

}  // namespace latte
