// The requests of a load: when they arrive, their prompts and the length of their answers. The same
// seed gives the same requests on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/jobs/bench_serve/options.h"
#include "src/jobs/simulate/trace.h"

namespace latte {

// Random requests as the options say, or the requests of the trace file, sorted by arrival.
// Errors: of LoadTrace.
[[nodiscard]] Result<std::vector<TraceRequest>> MakeWorkload(const BenchServeOptions& options,
                                                             int64_t vocab);

// A text of one common English word for each id: equal ids, equal words. Most tokenizers make about
// one token of each.
std::string WordsFor(std::span<const int32_t> ids);

struct RequestForm {
  std::string model;
  bool chat = false;
  bool stream = true;
  bool ignore_eos = false;
  bool token_ids = false;
};

// The JSON body of a request.
std::string RequestBody(const TraceRequest& request, const RequestForm& form);

}  // namespace latte
