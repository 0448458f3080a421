// Fetches weights of a checkpoint by name as views into the mapped files, whole or as one rank's
// slice.
#pragma once

#include <string>

#include "src/io/model_config.h"
#include "src/io/safetensors.h"
#include "src/layers/linear.h"
#include "src/layers/mlp.h"

namespace latte {

// Thread-compatible; the checkpoint must outlive it.
class WeightLoader {
 public:
  WeightLoader(const Checkpoint& checkpoint, const QuantConfig& quant)
      : checkpoint_(checkpoint), quant_(quant) {}

  // The matrix `name` of shape [rows, columns] before slicing, with its scales if it is FP8.
  // Errors: kNotFound, or kCorrupt with expected and found shape; kUnsupported for a dtype that
  // cannot be multiplied; kInvalidArgument for a slice that would cut a row or column short.
  [[nodiscard]] Result<Linear> Matrix(const std::string& name, int64_t rows, int64_t columns,
                                      const WeightSlice& slice = {}) const;

  // Rows [row_begin, row_begin + rows) of matrix `index` in the stack `name` of shape
  // [count, stack_rows, columns], with its part of the stack's scales; sliced after that.
  // Errors: as Matrix.
  struct StackPart {
    std::string name;
    int64_t count = 0;
    int64_t stack_rows = 0;
    int64_t columns = 0;
    int64_t index = 0;
    int64_t row_begin = 0;
    int64_t rows = 0;
  };
  [[nodiscard]] Result<Linear> FromStack(const StackPart& part,
                                         const WeightSlice& slice = {}) const;

  // The vector `name` of `size` values, as stored. Errors: as Matrix.
  [[nodiscard]] Result<TensorView> Vector(const std::string& name, int64_t size) const;

  // The vector `name` widened to f32. Errors: as Matrix.
  [[nodiscard]] Result<Tensor> FloatVector(const std::string& name, int64_t size) const;

  bool Has(const std::string& name) const { return checkpoint_.Find(name) != nullptr; }

 private:
  [[nodiscard]] Result<TensorView> Fetch(const std::string& name,
                                         std::initializer_list<int64_t> shape) const;
  // The f32 scales of one [rows, columns] matrix, stored at `stored`.
  [[nodiscard]] Result<Tensor> Scales(const std::string& name, const TensorView& stored) const;
  [[nodiscard]] Result<TensorView> FetchScales(const std::string& name,
                                               std::initializer_list<int64_t> shape) const;
  [[nodiscard]] Status CheckDType(const std::string& name, DType dtype) const;
  const Checkpoint& checkpoint_;
  QuantConfig quant_;
};

}  // namespace latte
