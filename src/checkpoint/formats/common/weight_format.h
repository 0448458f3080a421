// A format in which a checkpoint stores its matrices. It defines the keys of config.json that
// select it, the tensors of a matrix, their conversion for the kernels, and, for `latte quantize`,
// the encoding. Each format is one file of src/checkpoint/formats; formats.h lists them, and all
// other code walks that list. Layouts and their sources: docs/formats/weights.md.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/base/json_out_fwd.h"
#include "src/base/thread_pool.h"
#include "src/checkpoint/container/tensor_files.h"
#include "src/checkpoint/formats/common/loaded_matrix.h"
#include "src/tensor/tensor.h"

namespace latte {

struct WeightFormat;

// A format and its parameters, as the config of a checkpoint gives them.
struct QuantScheme {
  static constexpr int64_t kAll = 0;

  const WeightFormat* format = nullptr;
  int64_t bits = 8;        // of a value
  int64_t block_rows = 1;  // rows and columns of the matrix that share a scale; kAll: all
  int64_t block_columns = 128;
  bool symmetric = false;       // GPTQ: every zero point is the middle of the range
  bool zero_minus_one = false;  // GPTQ: zero points are stored minus one
};

// The matrix `name` ("….weight") of shape [N, K], or the stack [E, N, K], that a model needs.
struct WantedMatrix {
  const std::string& name;
  const std::vector<int64_t>& shape;

  int64_t rows() const { return shape.end()[-2]; }
  int64_t columns() const { return shape.end()[-1]; }
  // [n, k], after the number of matrices of a stack.
  std::vector<int64_t> Shape(int64_t n, int64_t k) const;
  std::string module() const { return name.substr(0, name.rfind('.')); }
};

// One of the tensors of a matrix.
struct MatrixTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<std::string_view> dtypes;  // accepted dtypes, as safetensors files name them
  bool required = true;
};

// The stored form of a matrix. The first tensor has the values, the second the scales, unless the
// format is plain; a format defines the others.
struct StoredMatrix {
  QuantScheme scheme;  // with the block size of this matrix: no kAll
  std::vector<MatrixTensor> tensors;
};

// The tensors of one matrix, or of a matrix of a stack.
struct MappedMatrix {
  StoredMatrix stored;
  std::vector<TensorView> views;  // of stored.tensors; a missing tensor is empty
  int64_t rows = 0;
  int64_t columns = 0;

  const std::string& name(size_t i) const { return stored.tensors[i].name; }
};

// The encoded bytes of some rows of a matrix.
struct EncodedRows {
  std::vector<std::byte> values;
  std::vector<std::byte> scales;
  double squared_error = 0;  // Σ (w − stored)²
  double squared = 0;        // Σ w²

  void AddError(float w, float stored);
};

// How `latte quantize` writes a format.
struct WeightEncoder {
  std::string_view name;     // of --to: "int4"
  std::string_view summary;  // for --help: "a scale per group"
  QuantScheme scheme;        // what it writes
  bool grouped = false;      // --group sets block_columns
  // The tensors that it writes, by their place in StoredMatrix, and their dtypes: values, scales,
  // and what WantedMatrix::shape says, as integers.
  struct Written {
    size_t tensor;
    std::string_view dtype;
  };
  std::span<const Written> written;
  // Whether it leaves the projection `name` unquantised.
  bool (*leaves_out)(std::string_view name);
  // Encodes consecutive rows [rows, columns]; they begin at a multiple of kEncodedRows. The caller
  // refuses values that are not finite.
  EncodedRows (*encode)(const QuantScheme& scheme, std::span<const float> w, int64_t columns);
  // The quantization_config for config.json. `kept`: modules that stay unquantised although the
  // format includes them ("model.layers.0.mlp.down_proj").
  JsonOut (*config)(const QuantScheme& scheme, const std::vector<std::string>& kept);
  // For synthetic weights, which all have the same scale: the bytes of that scale if the largest
  // weight is `largest`, and the code of a weight.
  std::string (*uniform_scale)(double largest);
  uint32_t (*uniform_code)(float weight, double largest);
};
inline constexpr int64_t kEncodedRows = 128;

struct WeightFormat {
  // quantization_config.quant_method in config.json; empty: the plain format.
  std::string_view method;
  // compressed-tensors: spellings of the "format" of a group; the first is named in messages.
  std::span<const std::string_view> group_formats = {};
  // Reads the scheme, without its format, from quantization_config, or of compressed-tensors from
  // the "weights" of a group. Errors: kCorrupt and kUnsupported naming the key, the value found and
  // the accepted values.
  Result<QuantScheme> (*parse)(const Json& json) = nullptr;
  // The tensors that represent the matrix, with `scheme` of this format.
  StoredMatrix (*tensors)(const WantedMatrix& wanted, const QuantScheme& scheme);
  // The whole matrix; the caller sets its blocks. Errors: kCorrupt and kUnsupported naming the
  // tensor. `threads` may be null.
  Result<LoadedMatrix> (*load)(const MappedMatrix& matrix, ThreadPool* threads);
  // Whether loading takes memory in addition to the mapped file; null: never.
  bool (*repacks)(const QuantScheme& scheme) = nullptr;
  // The --to of `latte quantize` that make smaller copies of it; empty: it cannot be the source.
  std::string_view smaller = {};
  const WeightEncoder* encoder = nullptr;  // null: not written
  // Whether any matrix may have it, also embedding, head and router; otherwise projections alone.
  bool everywhere = false;
};

}  // namespace latte
