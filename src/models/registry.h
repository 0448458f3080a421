// From a folder to a model: one row per architecture.
#pragma once

#include <memory>
#include <string>

#include "src/checkpoint/safetensors.h"
#include "src/models/model.h"

namespace latte {

// Loads config.json and the safetensors of `dir`.
// Errors: of LoadModelConfig, Checkpoint::Open and the architecture's Load.
[[nodiscard]] Result<std::unique_ptr<Model>> LoadModel(const std::string& dir,
                                                       const ModelOptions& options = {});

// The same of a checkpoint that is open, with the config that lies beside it. `dir` is for
// messages.
[[nodiscard]] Result<std::unique_ptr<Model>> LoadModel(const std::string& dir,
                                                       const ModelConfig& config,
                                                       Checkpoint checkpoint,
                                                       const ModelOptions& options = {});

}  // namespace latte
