// An engine that owns its model, over files that the caller has read already.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/checkpoint/check_weights.h"
#include "src/checkpoint/model_files.h"
#include "src/engine/core/engine_core.h"
#include "src/engine/link/rank_world.h"

namespace latte {

struct CreatedEngine {
  std::unique_ptr<Engine> engine;
  std::vector<std::string> warnings;  // for the user, of the settings and of the model
  // They live as long as the engine.
  const Model* model = nullptr;
  const Machine* machine = nullptr;  // runs the model
};

// Told how far the loading of weights is, where it takes long. Each may be empty.
struct LoadingHooks {
  std::function<void(int64_t done, int64_t layers)> repacked;  // as in ModelOptions
  BytesChecked checked;                                        // with EngineOptions::check_weights
};

// Loads the weights of `files.dir`. `ranks`: this process leads them, and all compute; it outlives
// the engine. Errors: as Engine::Create; of RankWorld::Share and JoinEngines.
[[nodiscard]] Result<CreatedEngine> CreateEngine(const EngineOptions& options, ModelFiles files,
                                                 RankWorld* ranks = nullptr,
                                                 const LoadingHooks& hooks = {});

}  // namespace latte
