// latte bench serve: load on a server with the OpenAI API, and measurements of its answers.
#pragma once

#include <functional>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/jobs/bench_serve/load.h"
#include "src/jobs/bench_serve/options.h"

namespace latte {

// ServeReport with the settings of the load. `watch`: of RunLoad.
// Errors: of Validate, ApiServer, MakeWorkload.
[[nodiscard]] Result<JsonOut> BenchServe(const BenchServeOptions& options,
                                         const std::function<bool(const LoadProgress&)>& watch);

}  // namespace latte
