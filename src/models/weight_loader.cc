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

bool IsE8m0(const StoredTensor& tensor) { return tensor.dtype_name == "F8_E8M0"; }

// A scale as stored: plain, or F8_E8M0 (a power of two, 2^(code−127); code 255 is NaN).
float ReadScale(const TensorView& stored, bool e8m0, int64_t i) {
  if (!e8m0) return ref::Load(stored.data, stored.dtype, i);
  const int code = static_cast<int>(stored.data[i]);
  return code == 255 ? std::nanf("") : std::ldexp(1.0f, code - 127);
}

// Matrix `index` of a stack [count, rows, columns].
TensorView MatrixOf(const TensorView& stack, int64_t index) {
  return TensorView(stack.RowBytes(index), stack.dtype, {stack.shape[1], stack.shape[2]});
}

void Own(Tensor scale, Linear& linear) {
  linear.scale = scale;
  linear.owned.push_back(std::move(scale));
}

// Cuts the weight of `linear` to the slice and says where the rest begins in the whole.
Status Cut(const std::string& name, const WeightSlice& slice, Linear& linear) {
  const bool by_rows = slice.along == WeightSlice::Along::kRows;
  const int64_t size = by_rows ? linear.outputs() : linear.inputs();
  if (slice.count < 1 || size % slice.count != 0 || slice.index < 0 || slice.index >= slice.count)
    return InvalidArgument(
        fmt::format("tensor '{}': expected {} {} to divide into {} parts, of "
                    "which part {} is one; take another number of ranks",
                    name, size, by_rows ? "rows" : "columns", slice.count, slice.index));
  linear.weight = CutWeight(linear.weight, slice);
  (by_rows ? linear.row_begin : linear.column_begin) += slice.index * (size / slice.count);
  return {};
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

Result<TensorView> WeightLoader::FetchScales(const std::string& name,
                                             std::initializer_list<int64_t> shape) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView stored, Fetch(name, shape));
  if (!IsE8m0(*checkpoint_.Find(name)) && !IsPlain(stored.dtype))
    return Unsupported(
        fmt::format("tensor '{}': expected F32, BF16, F16 or F8_E8M0 scales, found {}", name,
                    Name(stored.dtype)));
  return stored;
}

Result<Tensor> WeightLoader::Scales(const std::string& name, const TensorView& stored) const {
  const bool e8m0 = IsE8m0(*checkpoint_.Find(name));
  const int64_t columns = stored.shape[1];
  Tensor out(DType::kF32, {stored.shape[0], columns});
  for (int64_t i = 0; i < stored.elements(); ++i) {
    const float scale = ReadScale(stored, e8m0, i);
    if (!std::isfinite(scale) || scale <= 0)
      return Corrupt(fmt::format("tensor '{}': expected scales above 0, found {} at [{}, {}]", name,
                                 scale, i / columns, i % columns));
    out.Ptr<float>()[i] = scale;
  }
  return out;
}

Status WeightLoader::CheckDType(const std::string& name, DType dtype) const {
  if (IsPlain(dtype) || IsF8(dtype)) return {};
  return Unsupported(
      fmt::format("tensor '{}': expected F32, F16, BF16 or F8_E4M3, found {}", name, Name(dtype)));
}

Result<Linear> WeightLoader::Matrix(const std::string& name, int64_t rows, int64_t columns,
                                    const WeightSlice& slice) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView whole, Fetch(name, {rows, columns}));
  LATTE_RETURN_IF_ERROR(CheckDType(name, whole.dtype));
  Linear linear;
  linear.weight = whole;
  linear.format = {whole.dtype, quant_.block_rows, quant_.block_columns};
  if (IsF8(whole.dtype)) {
    const std::string scale_name = name + "_scale_inv";
    LATTE_ASSIGN_OR_RETURN(const TensorView stored,
                           FetchScales(scale_name, {CeilDiv(rows, quant_.block_rows),
                                                    CeilDiv(columns, quant_.block_columns)}));
    LATTE_ASSIGN_OR_RETURN(Tensor scale, Scales(scale_name, stored));
    Own(std::move(scale), linear);
  }
  LATTE_RETURN_IF_ERROR(Cut(name, slice, linear));
  return linear;
}

Result<Linear> WeightLoader::FromStack(const StackPart& part, const WeightSlice& slice) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView stack,
                         Fetch(part.name, {part.count, part.stack_rows, part.columns}));
  LATTE_RETURN_IF_ERROR(CheckDType(part.name, stack.dtype));
  Linear linear;
  linear.weight = MatrixOf(stack, part.index).Slice(0, part.row_begin, part.row_begin + part.rows);
  linear.format = {stack.dtype, quant_.block_rows, quant_.block_columns};
  linear.row_begin = part.row_begin;
  if (IsF8(stack.dtype)) {
    const std::string scale_name = part.name + "_scale_inv";
    LATTE_ASSIGN_OR_RETURN(
        const TensorView stored,
        FetchScales(scale_name, {part.count, CeilDiv(part.stack_rows, quant_.block_rows),
                                 CeilDiv(part.columns, quant_.block_columns)}));
    LATTE_ASSIGN_OR_RETURN(Tensor scale, Scales(scale_name, MatrixOf(stored, part.index)));
    Own(std::move(scale), linear);
  }
  LATTE_RETURN_IF_ERROR(Cut(part.name, slice, linear));
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
