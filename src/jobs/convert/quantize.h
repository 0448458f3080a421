// Makes a copy of a checkpoint with quantised projections, tensor by tensor: it needs memory for
// only a few rows. Reads plain and block-scaled FP8 checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/base/thread_pool.h"
#include "src/jobs/convert/quant_errors.h"
#include "src/jobs/convert/quant_scheme.h"
#include "src/jobs/job_progress.h"

namespace latte {

struct QuantizeReport {
  int64_t quantized = 0;     // number of quantised matrices
  int64_t kept = 0;          // number of unchanged tensors
  int64_t bytes_before = 0;  // of all tensors
  int64_t bytes_after = 0;
  QuantErrors errors;
  std::vector<std::string> not_divisible;  // modules whose rows do not divide into groups
  std::vector<std::string> files;          // copied together with config.json
  std::vector<std::string> notes;          // for the user: leftovers next to the folder
};

JsonOut ReportJson(const QuantizeReport& report);

struct QuantizeOptions {
  bool force = false;                 // replace an earlier checkpoint in `to`
  JobProgress progress;               // in bytes of the source
  std::function<bool()> interrupted;  // called often, from any thread; true ends the work
};

// Writes the model in folder `from` to folder `to`: projections in `scheme`, experts as separate
// matrices, everything else unchanged, with config.json, tokenizer and other small files.
// Errors: of LoadModelConfig, Checkpoint::Open, CheckTensors and CheckpointWriter; kUnsupported for
// a model that is already quantised or has several parts; kCorrupt for weights that are not finite.
[[nodiscard]] Result<QuantizeReport> QuantizeCheckpoint(const std::string& from,
                                                        const std::string& to,
                                                        const QuantScheme& scheme,
                                                        ThreadPool& threads,
                                                        const QuantizeOptions& options = {});

}  // namespace latte
