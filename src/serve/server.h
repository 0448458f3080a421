// `latte serve`: the HTTP server over one engine.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/openai/request.h"
#include "src/serve/engine_thread.h"
#include "src/serve/options.h"

namespace latte {

struct ServeParts {
  ServeOptions options;
  std::vector<std::string> names;  // of the model in the API; at least one
  std::string version;             // of Latte
  const OpenAiModel* model = nullptr;
  EngineLoader load;  // called on the engine's thread, once the server listens
  // Gets what a user should see when the server listens, and when it is ready: whole lines.
  std::function<void(const std::string&)> say;
};

// Serves until SIGTERM or SIGINT, then lets running requests end within options.drain_timeout. A
// second signal ends them at once.
// Errors: kInvalidArgument of options, access and addresses; kUnavailable if an address is in use;
// of the loader and of Engine::Step, which end the server; of Engine::SavePrefixes.
[[nodiscard]] Status Serve(const ServeParts& parts);

}  // namespace latte
