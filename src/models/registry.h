// Loads a model from a folder: one entry per architecture.
#pragma once

#include <memory>
#include <string>

#include "src/checkpoint/checkpoint.h"
#include "src/models/model.h"

namespace latte {

// Loads config.json and the safetensors of `dir`.
// Errors: of LoadModelConfig, Checkpoint::Open and the architecture's Load.
[[nodiscard]] Result<std::unique_ptr<Model>> LoadModel(const std::string& dir,
                                                       const ModelOptions& options = {});

// The same for an open checkpoint and its config. `dir` is for messages.
[[nodiscard]] Result<std::unique_ptr<Model>> LoadModel(const std::string& dir,
                                                       const ModelConfig& config,
                                                       Checkpoint checkpoint,
                                                       const ModelOptions& options = {});

}  // namespace latte
