// What the engine makes of many requests: gain by batching, by known prefixes, cost of determinism.
// Prompts are random tokens; answers are greedy unless said otherwise and never end early.
#pragma once

#include <string>
#include <vector>

#include "latte/options.h"

#include "src/base/json_out_fwd.h"
#include "src/kernels/machine.h"
#include "src/models/model.h"

namespace latte {

struct BenchBatchOptions {
  EngineOptions engine;
  std::vector<int64_t> batches = {1, 8, 16, 32};
  int64_t prompt = 16;  // tokens of every prompt
  int64_t gen = 32;     // steps that are measured, all sequences decoding
  double temperature = 0;
  double top_p = 1;
};

// Decode steps of several numbers of sequences, the steps of all in turn. Of every batch:
//   tokens_per_s, ms (of a step, median), overhead (share of the steps' time outside the model),
//   bytes, flops (of a step), memory_fraction
//   gain        tokens_per_s over those of the first batch
//   floor_gain  the gain if both took bytes over the rate of memory
//   fraction    gain / floor_gain
// Errors: of Settle and EngineCore::Create.
[[nodiscard]] Result<JsonOut> BenchBatch(const Model& model, const BenchBatchOptions& options,
                                         const Machine& machine);

struct BenchPrefixOptions {
  EngineOptions engine;
  int64_t requests = 32;
  int64_t prefix = 2000;  // tokens that all prompts begin with
  int64_t own = 100;      // tokens of each prompt behind it
  int64_t gen = 32;
  int64_t long_prompt = 8192;  // of the time to first token: cold, from memory, from disk; 0: none
};

// Seconds of all requests with and without the prefix cache, and their ratio; and the time to first
// token of a long prompt: cold, its prefix in memory, its prefix on disk after a restart (read once
// before, so that the system has it in memory; in a scratch folder beside the others of TMPDIR).
// Errors: as BenchBatch.
[[nodiscard]] Result<JsonOut> BenchPrefix(const Model& model, const BenchPrefixOptions& options,
                                          const Machine& machine);

struct BenchDeterminismOptions {
  EngineOptions engine;
  int64_t requests = 16;
  int64_t prompt = 200;
  int64_t gen = 160;
  int rounds = 3;
};

// The same requests at every level of determinism, with memory for all and with so little that some
// are preempted: tokens per second of prompt and answer, medians of rounds taken in turn.
// Errors: as BenchBatch.
[[nodiscard]] Result<JsonOut> BenchDeterminism(const Model& model,
                                               const BenchDeterminismOptions& options,
                                               const Machine& machine);

}  // namespace latte
