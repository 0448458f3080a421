// Measures the engine with many requests: the gain from batching, the gain from cached prefixes,
// the cost of determinism. Prompts are random tokens. Answers are greedy unless stated otherwise
// and never end early.
#pragma once

#include <string>
#include <vector>

#include "latte/options.h"

#include "src/base/json_out_fwd.h"
#include "src/engine/core/compute_device.h"
#include "src/jobs/job_progress.h"
#include "src/models/model.h"

namespace latte {

struct BenchBatchOptions {
  EngineOptions engine;
  std::vector<int64_t> batches = {1, 8, 16, 32};
  int64_t prompt = 16;  // tokens per prompt
  int64_t gen = 32;     // measured steps, in which all sequences decode
  double temperature = 0;
  double top_p = 1;
};

// Decode steps with several batch sizes; the steps of all sizes are interleaved. For each batch
// size:
//   tokens_per_s, ms (per step, median), overhead (share of the step time outside the model),
//   bytes, flops (per step), memory_fraction (null on a GPU, whose ceilings are not measured)
//   gain        tokens_per_s divided by the value of the first batch size
//   floor_gain  the gain if both were limited by memory bandwidth
//   fraction    gain / floor_gain
// Errors: of ResolveOptions and EngineCore::Create.
[[nodiscard]] Result<JsonOut> BenchBatch(const Model& model, const BenchBatchOptions& options,
                                         const ComputeDevice& device,
                                         const JobProgress& progress = {});

struct BenchPrefixOptions {
  EngineOptions engine;
  int64_t requests = 32;
  int64_t prefix = 2000;  // common prefix of all prompts, in tokens
  int64_t own = 100;      // tokens of each prompt after the prefix
  int64_t gen = 32;
  int64_t long_prompt = 8192;  // for the time to first token: cold, from memory, from disk; 0: none
};

// Seconds of all requests with and without the prefix cache, and their ratio. Also the time to
// first token of a long prompt: cold, with its prefix in memory, and with its prefix on disk after
// a restart (the file is read once before, so it is in the page cache; it lies in a scratch folder
// under TMPDIR). `progress`: in tokens of prompts and answers, as in BenchDeterminism.
// Errors: as BenchBatch.
[[nodiscard]] Result<JsonOut> BenchPrefix(const Model& model, const BenchPrefixOptions& options,
                                          const ComputeDevice& device,
                                          const JobProgress& progress = {});

struct BenchDeterminismOptions {
  EngineOptions engine;
  int64_t requests = 16;
  int64_t prompt = 200;
  int64_t gen = 160;
  int rounds = 3;
};

// Runs the same requests at every level of determinism, once with memory for all and once with so
// little that some are preempted. Reports tokens per second of prompt and answer, medians of
// interleaved rounds.
// Errors: as BenchBatch.
[[nodiscard]] Result<JsonOut> BenchDeterminism(const Model& model,
                                               const BenchDeterminismOptions& options,
                                               const ComputeDevice& device,
                                               const JobProgress& progress = {});

}  // namespace latte
