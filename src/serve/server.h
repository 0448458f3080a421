// `latte serve`: the HTTP server over one engine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/api/common/request.h"
#include "src/serve/engine_thread.h"
#include "src/serve/memory_plan.h"
#include "src/serve/options.h"

namespace latte {

struct ServeParts {
  ServeOptions options;
  std::vector<std::string> names;  // of the model in the API; at least one
  std::string version;             // of Latte
  const ApiModel* model = nullptr;
  int64_t mha_bytes_per_token = 0;  // ServedModel::mha_bytes_per_token
  MemoryPlan plan;
  EngineLoader load;  // called on the engine's thread, once the server listens
  // Whether to load the engine again when it fails after a successful first load; the server is not
  // ready meanwhile. Otherwise the error ends the server.
  bool restarts = false;
  // Cancels a running call of `load`, if there is one: it soon returns an error. If empty, a signal
  // during loading ends the process at once.
  std::function<void()> end_loading;
  // Gets what a user should see when the server listens, and when it is ready: one line at a time.
  std::function<void(const std::string&)> say;
};

// Serves until SIGTERM or SIGINT, then lets running requests end within options.drain_timeout. A
// second signal ends them at once.
// Errors: kInvalidArgument of options, access and addresses; kUnavailable if an address is in use;
// of the loader and of Engine::Step, where they end the server; of Engine::SavePrefixes.
[[nodiscard]] Status Serve(const ServeParts& parts);

}  // namespace latte
