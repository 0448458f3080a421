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
  // cannot be multiplied.
  [[nodiscard]] Result<Linear> Matrix(const std::string& name, int64_t rows, int64_t columns,
                                      const WeightSlice& slice = {}) const;

  // The vector `name` of `size` values, as stored. Errors: as Matrix.
  [[nodiscard]] Result<TensorView> Vector(const std::string& name, int64_t size) const;

  // The vector `name` widened to f32. Errors: as Matrix.
  [[nodiscard]] Result<Tensor> FloatVector(const std::string& name, int64_t size) const;

  bool Has(const std::string& name) const { return checkpoint_.Find(name) != nullptr; }

 private:
  [[nodiscard]] Result<TensorView> Fetch(const std::string& name,
                                         std::initializer_list<int64_t> shape) const;
  [[nodiscard]] Result<Tensor> Scales(const std::string& name, int64_t rows, int64_t columns) const;
  const Checkpoint& checkpoint_;
  QuantConfig quant_;
};

}  // namespace latte
