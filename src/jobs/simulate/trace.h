// Traces: requests with their arrival times, for simulations and for real-time runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/status.h"

namespace latte {

struct TraceRequest {
  double arrival_s = 0;  // since the trace began
  std::vector<int32_t> tokens;
  int64_t output_tokens = 1;
  int priority = 0;
};

// The limits of prompts and answers.
struct TraceLimits {
  int64_t vocab = 0;
  int64_t max_tokens = 0;  // prompt and answer together
};

// A random trace: arrivals of a Poisson process, lengths from lognormal distributions. The same
// shape gives the same trace on every machine.
struct TraceShape {
  int64_t requests = 100;
  double rate = 1;            // arrivals per second; 0: all at once
  double prompt_mean = 256;   // mean number of tokens, without the shared prefix
  double prompt_sigma = 0.5;  // standard deviation of the logarithm; 0: equal lengths
  double output_mean = 64;
  double output_sigma = 0.5;
  int64_t shared_prefix = 0;  // number of tokens at the beginning of every prompt that are equal
                              // within a group
  int64_t prefix_groups = 1;
  uint64_t seed = 0;

  // Errors: kInvalidArgument naming the flag.
  [[nodiscard]] Status Validate() const;
};

// Sorted by arrival; lengths are cut to the limits.
// Errors: of Validate; kInvalidArgument if the shared prefix leaves no room.
[[nodiscard]] Result<std::vector<TraceRequest>> MakeTrace(const TraceShape& shape,
                                                          const TraceLimits& limits);

// One JSON object per line, in any order:
//   arrival_s      seconds, ≥ 0
//   prompt_tokens  length of a prompt of random tokens; or tokens: its ids
//   output_tokens  length of the answer, ≥ 1
//   prefix_group   optional: the prompt begins with the shape's shared prefix of that group, which
//                  is part of prompt_tokens
//   priority       optional, lower is served first
// Errors: of reading; kCorrupt naming file, line and key.
[[nodiscard]] Result<std::vector<TraceRequest>> LoadTrace(const std::string& path,
                                                          const TraceShape& shape,
                                                          const TraceLimits& limits);

}  // namespace latte
