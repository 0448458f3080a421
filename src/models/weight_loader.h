// Reads the weights of a checkpoint by name, as views into the mapped files, whole or one rank's
// slice.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>

#include "src/base/thread_pool.h"
#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/config/model_config.h"
#include "src/layers/ranks.h"
#include "src/models/device_weights.h"

namespace latte {

// The bytes of what is loaded, with its scales and zero points. A tensor that is used in two places
// counts once.
class LoadedBytes {
 public:
  void Add(const std::string& name, int64_t bytes) {
    if (names_.insert(name).second) total_ += bytes;
  }
  int64_t total() const { return total_; }

 private:
  std::set<std::string> names_;
  int64_t total_ = 0;
};

// Thread-compatible; what it takes must outlive it.
class WeightLoader {
 public:
  // threads: for repacking; null: the calling thread repacks. weights: where every tensor goes;
  // null: all stay on the host. bytes: counts what is loaded; may be null.
  WeightLoader(const Checkpoint& checkpoint, const QuantConfig& quant,
               ThreadPool* threads = nullptr, DeviceWeights* weights = nullptr,
               LoadedBytes* bytes = nullptr)
      : checkpoint_(checkpoint),
        quant_(quant),
        threads_(threads),
        weights_(weights),
        bytes_(bytes) {}

  // The matrix `name` of shape [rows, columns] before slicing, in any format of checkpoint/formats,
  // with its scales. Views into the file, except AWQ, GPTQ and packed int8 values, which are
  // repacked. Errors: kNotFound; kCorrupt with expected and found shape; kUnsupported for a dtype
  // that cannot be multiplied, reordered columns, or zero points of int8; kInvalidArgument for a
  // slice that would cut a row, a column or a group of integer weights.
  [[nodiscard]] Result<Linear> Matrix(const std::string& name, int64_t rows, int64_t columns,
                                      const WeightSlice& slice = {}) const;

  // Rows [row_begin, row_begin + rows) of matrix `index` in the stack `name` of shape [count,
  // stack_rows, columns], with its scales; then the slice of it. Errors: as Matrix.
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

  // W_UK and W_UV of the attention `name`, per head [N, C] and then [V, C]: kv_b_proj.weight of
  // H·(N+V) rows, or k_b_proj.weight and v_b_proj.weight, as LayerLayout::split_kv_b says. Weights
  // in blocks are copied as bf16: both products need them, by rows and by columns, and only rows
  // are in blocks. Errors: as Matrix.
  [[nodiscard]] Result<Linear> KvB(const std::string& name, const MlaDims& dims,
                                   const WeightSlice& slice) const;

  // The vector `name` of `size` values, as stored. Errors: as Matrix.
  [[nodiscard]] Result<TensorView> Vector(const std::string& name, int64_t size) const;

  // Rows of the vector `name` of `size` values, times `factor`, rounded to f32. Errors: as Matrix.
  [[nodiscard]] Result<Tensor> FloatVector(const std::string& name, int64_t size,
                                           const WeightSlice& slice = {},
                                           double factor = 1.0) const;

  // A constant of the model where its weights lie.
  Tensor Constant(Tensor host) const {
    return weights_ == nullptr ? std::move(host) : weights_->PlaceOwned(std::move(host));
  }

  bool Has(const std::string& name) const { return checkpoint_.Find(name) != nullptr; }

 private:
  [[nodiscard]] Result<TensorView> Fetch(const std::string& name,
                                         std::span<const int64_t> shape) const;
  [[nodiscard]] Result<TensorView> FetchVector(const std::string& name, int64_t size) const;
  [[nodiscard]] Result<MappedMatrix> MapMatrix(const StackPart& part) const;
  // A matrix in host memory: views of the files, or memory of its own.
  using Read = std::function<Result<LoadedMatrix>()>;
  [[nodiscard]] Result<LoadedMatrix> ReadPart(const StackPart& part,
                                              const WeightSlice& slice) const;
  [[nodiscard]] Result<LoadedMatrix> ReadKvB(const std::string& name, const MlaDims& dims,
                                             const WeightSlice& slice) const;
  [[nodiscard]] Result<LoadedMatrix> JoinKvB(const std::string& name, const MlaDims& dims,
                                             const WeightSlice& slice) const;
  // What read() gives, where weights lie. key: names the matrix. One that is converted for a device
  // is read once, although weights are loaded twice (DeviceWeights::InArena).
  [[nodiscard]] Result<Linear> Place(const std::string& key, const Read& read) const;
  void Count(const std::string& name, int64_t bytes) const {
    if (bytes_ != nullptr) bytes_->Add(name, bytes);
  }

  const Checkpoint& checkpoint_;
  QuantConfig quant_;
  ThreadPool* threads_;
  DeviceWeights* weights_;
  LoadedBytes* bytes_;
};

}  // namespace latte
