// An engine that owns its model, over files that the caller has read already.
#pragma once

#include <memory>

#include "src/checkpoint/model_files.h"
#include "src/engine/engine_core.h"

namespace latte {

// Loads the weights of `files.dir`. Errors: as Engine::Create.
[[nodiscard]] Result<std::unique_ptr<EngineCore>> CreateEngine(const EngineOptions& options,
                                                               ModelFiles files);

}  // namespace latte
