#include "src/models/weight_loader.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "src/base/math.h"
#include "src/kernels/ref/ref.h"

namespace latte {
namespace {

bool IsPlain(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// A scale as stored: plain, or F8_E8M0 (a power of two, 2^(code−127); code 255 is NaN).
float ReadScale(const TensorView& stored, bool e8m0, int64_t i) {
  if (!e8m0) return ref::Load(stored.data, stored.dtype, i);
  const int code = static_cast<int>(stored.data[i]);
  return code == 255 ? std::nanf("") : std::ldexp(1.0f, code - 127);
}

}  // namespace

Result<TensorView> WeightLoader::Fetch(const std::string& name,
                                       std::initializer_list<int64_t> shape) const {
  const StoredTensor* stored = checkpoint_.Find(name);
  if (stored == nullptr)
    return NotFound(fmt::format("tensor '{}' is missing from the checkpoint", name));
  if (!std::equal(shape.begin(), shape.end(), stored->shape.begin(), stored->shape.end()))
    return Corrupt(fmt::format("tensor '{}': expected shape {}, found {}", name,
                               ShapeString(std::span(shape.begin(), shape.size())),
                               ShapeString(stored->shape)));
  LATTE_RETURN_IF_ERROR(ToDType(stored->dtype_name));
  return checkpoint_.View(*stored);
}

Result<Tensor> WeightLoader::Scales(const std::string& name, int64_t rows, int64_t columns) const {
  const int64_t scale_rows = CeilDiv(rows, quant_.block_rows);
  const int64_t scale_columns = CeilDiv(columns, quant_.block_columns);
  LATTE_ASSIGN_OR_RETURN(const TensorView stored, Fetch(name, {scale_rows, scale_columns}));
  const bool e8m0 = checkpoint_.Find(name)->dtype_name == "F8_E8M0";
  if (!e8m0 && !IsPlain(stored.dtype))
    return Unsupported(
        fmt::format("tensor '{}': expected F32, BF16, F16 or F8_E8M0 scales, found {}", name,
                    Name(stored.dtype)));
  Tensor out(DType::kF32, {scale_rows, scale_columns});
  for (int64_t i = 0; i < scale_rows * scale_columns; ++i) {
    const float scale = ReadScale(stored, e8m0, i);
    if (!std::isfinite(scale) || scale <= 0)
      return Corrupt(fmt::format("tensor '{}': expected scales above 0, found {} at [{}, {}]", name,
                                 scale, i / scale_columns, i % scale_columns));
    out.Ptr<float>()[i] = scale;
  }
  return out;
}

Result<Linear> WeightLoader::Matrix(const std::string& name, int64_t rows, int64_t columns,
                                    const WeightSlice& slice) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView whole, Fetch(name, {rows, columns}));
  Linear linear;
  linear.weight = CutWeight(whole, slice);
  linear.format = {whole.dtype, quant_.block_rows, quant_.block_columns};
  if (IsPlain(whole.dtype)) return linear;
  if (!IsF8(whole.dtype))
    return Unsupported(fmt::format("tensor '{}': expected F32, F16, BF16 or F8_E4M3, found {}",
                                   name, Name(whole.dtype)));
  LATTE_ASSIGN_OR_RETURN(linear.scale, Scales(name + "_scale_inv", rows, columns));
  const bool by_rows = slice.along == WeightSlice::Along::kRows;
  linear.row_begin = by_rows ? slice.index * (rows / slice.count) : 0;
  linear.column_begin = by_rows ? 0 : slice.index * (columns / slice.count);
  return linear;
}

Result<TensorView> WeightLoader::Vector(const std::string& name, int64_t size) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView stored, Fetch(name, {size}));
  if (!IsPlain(stored.dtype))
    return Unsupported(
        fmt::format("tensor '{}': expected F32, F16 or BF16, found {}", name, Name(stored.dtype)));
  return stored;
}

Result<Tensor> WeightLoader::FloatVector(const std::string& name, int64_t size) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView stored, Vector(name, size));
  Tensor out(DType::kF32, {size});
  for (int64_t i = 0; i < size; ++i) out.Ptr<float>()[i] = ref::Load(stored.data, stored.dtype, i);
  return out;
}

}  // namespace latte
