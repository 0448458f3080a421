// quantization_config of a checkpoint: the quantisation method of its matrices. The tensors show
// which matrices are quantised (quant_tensors.h); lists of module names are neither needed nor
// read.
#pragma once

#include <cstdint>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"

namespace latte {

enum class QuantMethod {
  kNone,
  kF8,                 // E4M3 with a scale per block (DeepSeek-V3)
  kCompressedTensors,  // int8, or int4 and int8 packed into 32-bit words along a row of the matrix
  kAwq,                // int4 packed across rows, interleaved
  kGptq,               // int4 packed along columns
};

// One storage scheme of integer weights.
struct IntScheme {
  int64_t bits = 4;
  bool packed = true;  // packed into 32-bit words; false: one int8 each
  // The number of columns of a row that share a scale; kWholeRow, kWholeMatrix.
  int64_t group = 128;

  static constexpr int64_t kWholeRow = 0;
  static constexpr int64_t kWholeMatrix = -1;
};

struct QuantConfig {
  QuantMethod method = QuantMethod::kNone;
  int64_t block_rows = 128;  // for kF8
  int64_t block_columns = 128;
  std::vector<IntScheme> schemes;  // for integer methods; at least one
  bool symmetric = false;          // for kGptq: every zero point is the middle of the range
  bool zero_minus_one = false;     // for kGptq: zero points are stored minus one

  // Whether the matrices must be repacked before kernels can multiply them.
  bool Repacks() const;
};

// Reads the member quantization_config of `config`; absent: kNone.
// Errors: kCorrupt and kUnsupported naming the key, the value found and the accepted values.
[[nodiscard]] Result<QuantConfig> ParseQuantConfig(const Json& config);

}  // namespace latte
