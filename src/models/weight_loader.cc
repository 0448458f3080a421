#include "src/models/weight_loader.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/kernels/ref/ref.h"

namespace latte {

Result<TensorView> WeightLoader::Fetch(const std::string& name,
                                       std::initializer_list<int64_t> shape) const {
  const StoredTensor* stored = checkpoint_.Find(name);
  if (stored == nullptr)
    return NotFound(fmt::format("tensor '{}' is missing from the checkpoint", name));
  if (!std::equal(shape.begin(), shape.end(), stored->shape.begin(), stored->shape.end()))
    return Corrupt(fmt::format("tensor '{}': expected shape {}, found {}", name,
                               ShapeString(std::span(shape.begin(), shape.size())),
                               ShapeString(stored->shape)));
  LATTE_ASSIGN_OR_RETURN(const DType dtype, ToDType(stored->dtype_name));
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16)
    return Unsupported(
        fmt::format("tensor '{}': expected F32, F16 or BF16, found {}", name, stored->dtype_name));
  return checkpoint_.View(*stored);
}

Result<Linear> WeightLoader::Matrix(const std::string& name, int64_t rows, int64_t columns,
                                    const WeightSlice& slice) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView whole, Fetch(name, {rows, columns}));
  Linear linear;
  linear.weight = CutWeight(whole, slice);
  linear.format.value = whole.dtype;
  return linear;
}

Result<TensorView> WeightLoader::Vector(const std::string& name, int64_t size) const {
  return Fetch(name, {size});
}

Result<Tensor> WeightLoader::FloatVector(const std::string& name, int64_t size) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView stored, Fetch(name, {size}));
  Tensor out(DType::kF32, {size});
  for (int64_t i = 0; i < size; ++i) out.Ptr<float>()[i] = ref::Load(stored.data, stored.dtype, i);
  return out;
}

}  // namespace latte
