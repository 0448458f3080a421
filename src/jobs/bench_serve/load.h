// Sends the requests of a workload when they are due, and records their answers. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/jobs/bench_serve/record.h"
#include "src/jobs/bench_serve/workload.h"
#include "src/session/remote/api_server.h"

namespace latte {

struct LoadOptions {
  RequestForm form;
  int64_t concurrency = 0;  // most requests in flight; 0: no limit
};

struct LoadProgress {
  int64_t done = 0;
  int64_t total = 0;
  int64_t tokens = 0;
};

struct LoadResult {
  std::vector<ServeRecord> records;  // of finished requests, in the order of their ends
  int64_t peak_in_flight = 0;
  int64_t unsent = 0;     // because of the stop
  int64_t cancelled = 0;  // in flight at the stop
};

// A request that is due waits while `concurrency` others are in flight. `watch` is called about
// five times a second; false ends the load: requests in flight are cancelled.
LoadResult RunLoad(const ApiServer& server, std::span<const TraceRequest> workload,
                   const LoadOptions& options,
                   const std::function<bool(const LoadProgress&)>& watch);

}  // namespace latte
