// Which tensors stand for one matrix of a quantised checkpoint, and of which shapes they must be.
// Layouts and their sources: docs/formats/weights.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/checkpoint/config/quant_config.h"
#include "src/checkpoint/safetensors.h"

namespace latte {

enum class MatrixForm { kPlain, kF8, kI8, kPacked4, kPacked8, kAwq, kGptq };

// One of the tensors of a matrix.
struct MatrixTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::string_view> dtypes;  // those that are read
  bool required = true;
};

// A matrix as a file holds it. Tensors in this order: values; scales, unless plain; zeros (kI8,
// packed, kAwq, kGptq); order of the columns (packed, kGptq); shape (packed).
struct StoredMatrix {
  MatrixForm form = MatrixForm::kPlain;
  int64_t block_rows = 1;  // rows and columns that share a scale
  int64_t block_columns = 1;
  std::vector<MatrixTensor> tensors;
};

// How `tensors` hold the matrix `name` ("….weight") of shape [N, K], or a stack [E, N, K] of them.
// Judges names and, of int formats, which of the config's schemes the shapes fit; a matrix that is
// in no form at all is looked for as plain. Whether the tensors are there is for the caller to see.
StoredMatrix FindMatrix(const QuantConfig& quant, const std::string& name,
                        const std::vector<int64_t>& shape,
                        const std::map<std::string, StoredTensor, std::less<>>& tensors);

}  // namespace latte
