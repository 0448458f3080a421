// quantization_config of a checkpoint: the schemes in which its matrices are stored. The tensors
// show which matrices are quantised (quant_tensors.h); lists of module names are neither needed nor
// read.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/checkpoint/formats/common/weight_format.h"

namespace latte {

struct QuantConfig {
  std::vector<QuantScheme> schemes;  // empty: not quantised

  // The format of the first scheme; kPlainWeights without schemes.
  const WeightFormat& format() const;
  // Whether loading takes memory in addition to the mapped files.
  bool Repacks() const;
};

// Reads the member quantization_config of `config`; absent: no schemes.
// Errors: kCorrupt and kUnsupported naming the key, the value found and the accepted values.
[[nodiscard]] Result<QuantConfig> ParseQuantConfig(const Json& config);

// "fp8, compressed-tensors, awq or gptq": the methods that are read.
std::string QuantMethods();

}  // namespace latte
