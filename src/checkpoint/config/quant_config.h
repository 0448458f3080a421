// quantization_config of a checkpoint: how its matrices are quantised. Which of them are, the
// tensors show (quant_tensors.h); lists of module names are not needed and not read.
#pragma once

#include <cstdint>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"

namespace latte {

enum class QuantMethod {
  kNone,
  kF8,                 // E4M3 with a scale per block (DeepSeek-V3)
  kCompressedTensors,  // int8, or int4 and int8 packed into 32-bit words along a row
  kAwq,                // int4 packed across rows, interleaved
  kGptq,               // int4 packed along columns
};

// One way in which integer weights of a checkpoint are stored.
struct IntScheme {
  int64_t bits = 4;
  bool packed = true;  // into 32-bit words; false: one int8 each
  // Columns of a row that share a scale; kWholeRow, kWholeMatrix.
  int64_t group = 128;

  static constexpr int64_t kWholeRow = 0;
  static constexpr int64_t kWholeMatrix = -1;
};

struct QuantConfig {
  QuantMethod method = QuantMethod::kNone;
  int64_t block_rows = 128;  // of kF8
  int64_t block_columns = 128;
  std::vector<IntScheme> schemes;  // of the integer methods; at least one
  bool symmetric = false;          // of kGptq: every zero is the middle
  bool zero_minus_one = false;     // of kGptq: zeros are stored less one

  // Whether matrices are stored in an order that products cannot take.
  bool Repacks() const;
};

// Reads the member quantization_config of `config`; absent: kNone.
// Errors: kCorrupt and kUnsupported naming the key, what was found and what is read.
[[nodiscard]] Result<QuantConfig> ParseQuantConfig(const Json& config);

}  // namespace latte
