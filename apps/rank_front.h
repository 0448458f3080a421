// The front of `latte serve` with several ranks, or with --isolate: a process without an engine
// that holds the HTTP sockets. It starts the ranks, or the engine process, which join it over a
// control connection.
#pragma once

#include <memory>
#include <stop_token>

#include "latte/engine.h"
#include "latte/options.h"

#include "src/checkpoint/model_files.h"
#include "src/engine/link/front_link.h"
#include "src/engine/link/rank_world.h"

namespace latte {

// Starts the ranks, as mpirun with this process's own words; one starts without mpirun.
// step_timeout: as RemoteOptions.
// Errors: as RemoteEngine::Start; kUnsupported without mpirun, with what to install.
[[nodiscard]] Result<std::unique_ptr<Engine>> StartRanksOf(const EngineOptions& options,
                                                           const ModelFiles& files,
                                                           double step_timeout,
                                                           const std::stop_token& stop);

// The link of a rank that a front has started; null if none has. world: null for a rank that is
// alone. A rank whose front, or another rank, is lost ends at once: nothing it computes can be
// used. Errors: as FrontLink::Join.
[[nodiscard]] Result<std::unique_ptr<FrontLink>> JoinFront(RankWorld* world);

}  // namespace latte
