// The tensors that represent one matrix of a quantised checkpoint, and their required shapes.
// Layouts and their sources: docs/formats/weights.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/checkpoint/config/quant_config.h"
#include "src/checkpoint/safetensors/safetensors.h"

namespace latte {

enum class MatrixForm { kPlain, kF8, kI8, kPacked4, kPacked8, kAwq, kGptq };

// One of the tensors of a matrix.
struct MatrixTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::string_view> dtypes;  // accepted dtypes
  bool required = true;
};

// The stored form of a matrix. The tensors are, in this order: values; scales, unless plain; zeros
// (kI8, packed, kAwq, kGptq); order of the columns (packed, kGptq); shape (packed).
struct StoredMatrix {
  MatrixForm form = MatrixForm::kPlain;
  int64_t block_rows = 1;  // rows and columns of the matrix that share a scale
  int64_t block_columns = 1;
  std::vector<MatrixTensor> tensors;
};

// The storage form in `tensors` of the matrix `name` ("….weight") of shape [N, K], or of a stack
// [E, N, K]. Decides by names and, for int formats, by which of the config's schemes the shapes
// fit. A matrix in no known form counts as plain. The caller checks that the tensors exist.
StoredMatrix FindMatrix(const QuantConfig& quant, const std::string& name,
                        const std::vector<int64_t>& shape,
                        const std::map<std::string, StoredTensor, std::less<>>& tensors);

}  // namespace latte
