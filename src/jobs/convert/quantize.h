// A checkpoint with its projections quantised, tensor by tensor: memory stays bounded by a few
// rows. Reads plain and block-scaled FP8 checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out_fwd.h"
#include "src/base/thread_pool.h"
#include "src/jobs/convert/quant_scheme.h"

namespace latte {

// "fp8", "int8" or "int4" from a flag; `group` matters for int4 only.
// Errors: kInvalidArgument listing what is accepted.
[[nodiscard]] Result<QuantScheme> ParseQuantScheme(std::string_view kind, int64_t group);

struct QuantizeReport {
  int64_t quantized = 0;     // matrices
  int64_t kept = 0;          // tensors as they were
  int64_t bytes_before = 0;  // of all tensors
  int64_t bytes_after = 0;
  // Of a matrix: ‖W − Ŵ‖ / ‖W‖ over all its elements.
  double mean_relative_error = 0;
  double max_relative_error = 0;
  std::string worst;                       // the matrix of the largest error
  std::vector<std::string> not_divisible;  // modules whose rows do not divide into groups
  std::vector<std::string> files;          // copied beside config.json
  std::vector<std::string> notes;          // for the user: what lies beside the folder
};

JsonOut ReportJson(const QuantizeReport& report);

// done and total bytes of the source.
using QuantizeProgress = std::function<void(int64_t done, int64_t total)>;

struct QuantizeOptions {
  bool force = false;  // replace the checkpoint that `to` holds
  QuantizeProgress progress;
  std::function<bool()> interrupted;  // asked often, by any thread: true ends the work
};

// Writes the model in folder `from` as folder `to`: projections in `scheme`, experts one by one,
// everything else as it is, with config.json, tokenizer and other small files.
// Errors: of LoadModelConfig, Checkpoint::Open, CheckTensors and CheckpointWriter; kUnsupported for
// a model that is quantised already, or of several parts; kCorrupt for weights that are not finite.
[[nodiscard]] Result<QuantizeReport> QuantizeCheckpoint(const std::string& from,
                                                        const std::string& to,
                                                        const QuantScheme& scheme,
                                                        ThreadPool& threads,
                                                        const QuantizeOptions& options = {});

}  // namespace latte
