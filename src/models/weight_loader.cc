#include "src/models/weight_loader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/math.h"
#include "src/checkpoint/quant_tensors.h"
#include "src/models/weight_repack.h"
#include "src/tensor/dtype.h"

namespace latte {

struct WeightLoader::Parts {
  StoredMatrix stored;
  std::vector<TensorView> views;  // of stored.tensors; of a stack, its matrix
  int64_t rows = 0;               // of the whole matrix
  int64_t columns = 0;

  const std::string& name(size_t i) const { return stored.tensors[i].name; }
};

namespace {

// The scales of one matrix as f32.
Result<Tensor> FloatScales(const std::string& name, const TensorView& stored) {
  const int64_t columns = stored.shape[1];
  Tensor out(DType::kF32, {stored.shape[0], columns});
  for (int64_t i = 0; i < stored.elements(); ++i) {
    const float scale = LoadElement(stored.data, stored.dtype, i);
    if (!std::isfinite(scale) || scale <= 0)
      return Corrupt(fmt::format("tensor '{}': expected scales above 0, found {} at [{}, {}]", name,
                                 scale, i / columns, i % columns));
    out.Ptr<float>()[i] = scale;
  }
  return out;
}

// Matrix `index` of a stack [count, rows, columns].
TensorView MatrixOf(const TensorView& stack, int64_t index) {
  return TensorView(stack.RowBytes(index), stack.dtype, {stack.shape[1], stack.shape[2]});
}

// Stores `tensor` with the weight and returns a view of it.
TensorView Own(Tensor tensor, Linear& linear) {
  linear.owned.push_back(std::move(tensor));
  return linear.owned.back().view();
}

int64_t IntAt(const TensorView& ints, int64_t i) {
  if (ints.dtype == DType::kI64) {
    int64_t value;
    std::memcpy(&value, ints.data + i * 8, sizeof(value));
    return value;
  }
  int32_t value;
  std::memcpy(&value, ints.data + i * 4, sizeof(value));
  return value;
}

// Whether the columns are in their original order: group i is columns [i·group, (i+1)·group).
Status CheckOrder(const std::string& name, const TensorView& g_idx, int64_t group) {
  if (g_idx.empty()) return {};
  const int64_t columns = g_idx.shape[0];
  for (int64_t k = 0; k < columns; ++k) {
    const int64_t found = IntAt(g_idx, k);
    if (found < 0 || found >= CeilDiv(columns, group))
      return Corrupt(fmt::format("tensor '{}': expected groups of 0 to {}, found {} at [{}]", name,
                                 CeilDiv(columns, group) - 1, found, k));
    if (found != k / group)
      return Unsupported(fmt::format(
          "tensor '{}': expected columns in their own order, found group {} at [{}]: weights "
          "ordered by activation (desc_act, actorder) are not read; use a copy without",
          name, found, k));
  }
  return {};
}

// Checks the stored shape of packed values, which otherwise only the config gives.
Status CheckShape(const std::string& name, const TensorView& shape, int64_t rows, int64_t columns) {
  if (shape.empty() || (IntAt(shape, 0) == rows && IntAt(shape, 1) == columns)) return {};
  return Corrupt(fmt::format("tensor '{}': expected [{}, {}], found [{}, {}]", name, rows, columns,
                             IntAt(shape, 0), IntAt(shape, 1)));
}

// The first `columns` values of rows that may be longer.
TensorView FirstColumns(const TensorView& weight, int64_t columns) {
  return weight.Slice(1, 0, columns / ValuesPerElement(weight.dtype));
}

// Words [N, W] viewed as bytes of two values each.
TensorView AsNibbles(const TensorView& words) {
  return TensorView(words.data, DType::kU4, {words.shape[0], words.shape[1] * 4});
}

// Cuts the weight of `linear` to the slice and records where it begins in the whole weight.
Status Cut(const std::string& name, const WeightSlice& slice, Linear& linear) {
  const bool by_rows = slice.along == WeightSlice::Along::kRows;
  const int64_t size = by_rows ? linear.outputs() : linear.inputs();
  if (slice.count < 1 || size % slice.count != 0 || slice.index < 0 || slice.index >= slice.count)
    return InvalidArgument(
        fmt::format("tensor '{}': expected {} {} to divide into {} parts, of "
                    "which part {} is one; take another number of ranks",
                    name, size, by_rows ? "rows" : "columns", slice.count, slice.index));
  const int64_t part = size / slice.count;
  const int64_t group = linear.format.block_columns;
  // If a whole row shares one scale, only the two values of a byte must stay together.
  const int64_t whole = group < size ? group : ValuesPerElement(linear.weight.dtype);
  if (!by_rows && linear.takes_int8() && part % whole != 0)
    return InvalidArgument(
        fmt::format("tensor '{}': expected {} parts of {} columns to hold whole groups of {}, "
                    "found parts of {}; take another number of ranks",
                    name, slice.count, size, whole, part));
  linear.weight = CutWeight(linear.weight, slice);
  (by_rows ? linear.row_begin : linear.column_begin) += slice.index * part;
  return {};
}

}  // namespace

Result<TensorView> WeightLoader::Fetch(const std::string& name,
                                       std::span<const int64_t> shape) const {
  const StoredTensor* stored = checkpoint_.Find(name);
  if (stored == nullptr)
    return NotFound(fmt::format("tensor '{}' is missing from the checkpoint", name));
  if (!std::equal(shape.begin(), shape.end(), stored->shape.begin(), stored->shape.end()))
    return Corrupt(fmt::format("tensor '{}': expected shape {}, found {}", name, ShapeString(shape),
                               ShapeString(stored->shape)));
  LATTE_RETURN_IF_ERROR(ToDType(stored->dtype_name));
  return checkpoint_.View(*stored);
}

Result<WeightLoader::Parts> WeightLoader::FetchParts(const StackPart& part) const {
  std::vector<int64_t> shape = {part.stack_rows, part.columns};
  if (part.count > 0) shape.insert(shape.begin(), part.count);
  Parts out = {.stored = FindMatrix(quant_, part.name, shape, checkpoint_.tensors()),
               .rows = part.stack_rows,
               .columns = part.columns};
  for (const MatrixTensor& tensor : out.stored.tensors) {
    if (!tensor.required && !Has(tensor.name)) {
      out.views.emplace_back();
      continue;
    }
    LATTE_ASSIGN_OR_RETURN(const TensorView view, Fetch(tensor.name, tensor.shape));
    const std::string& found = checkpoint_.Find(tensor.name)->dtype_name;
    if (std::find(tensor.dtypes.begin(), tensor.dtypes.end(), found) == tensor.dtypes.end())
      return Unsupported(fmt::format("tensor '{}': expected {}, found {}", tensor.name,
                                     fmt::join(tensor.dtypes, ", "), found));
    out.views.push_back(view.rank == 3 ? MatrixOf(view, part.index) : view);
  }
  return out;
}

Status WeightLoader::BindF8(const Parts& parts, Linear& linear) const {
  linear.weight = parts.views[0];
  LATTE_ASSIGN_OR_RETURN(Tensor scale, FloatScales(parts.name(1), parts.views[1]));
  linear.scale = Own(std::move(scale), linear);
  return {};
}

Status WeightLoader::BindInt8(const Parts& parts, Linear& linear) const {
  const TensorView& zeros = parts.views[2];
  for (int64_t i = 0; i < zeros.elements() && !zeros.empty(); ++i)
    if (zeros.data[i] != std::byte{0})
      return Unsupported(
          fmt::format("tensor '{}': expected zeros of 0, found {}: int8 weights are read "
                      "symmetric only",
                      parts.name(2), static_cast<int>(static_cast<int8_t>(zeros.data[i]))));
  linear.weight = parts.views[0];
  const TensorView& scale = parts.views[1];
  linear.scale = scale.rank == 1 ? TensorView(scale.data, scale.dtype, {1, 1}) : scale;
  return {};
}

Status WeightLoader::BindPacked(const Parts& parts, Linear& linear) const {
  LATTE_RETURN_IF_ERROR(CheckOrder(parts.name(3), parts.views[3], parts.stored.block_columns));
  LATTE_RETURN_IF_ERROR(CheckShape(parts.name(4), parts.views[4], parts.rows, parts.columns));
  linear.scale = parts.views[1];
  const TensorView& zeros = parts.views[2];
  if (parts.stored.form == MatrixForm::kPacked8) {
    if (!zeros.empty())
      return Unsupported(
          fmt::format("tensor '{}': expected none, found one: int8 weights are read symmetric only",
                      parts.name(2)));
    linear.weight = FirstColumns(Own(UnpackInt8(parts.views[0], threads_), linear), parts.columns);
    return {};
  }
  linear.weight = FirstColumns(AsNibbles(parts.views[0]), parts.columns);
  if (!zeros.empty()) linear.zero = Own(PackedZeros(zeros, parts.rows), linear);
  return {};
}

Status WeightLoader::BindAcross(const Parts& parts, Linear& linear) const {
  const bool awq = parts.stored.form == MatrixForm::kAwq;
  if (!awq)
    LATTE_RETURN_IF_ERROR(CheckOrder(parts.name(3), parts.views[3], parts.stored.block_columns));
  const TensorView& words = parts.views[0];
  Tensor weight = awq ? RepackAwq(words, parts.rows, threads_) : RepackGptq(words, threads_);
  linear.weight = FirstColumns(Own(std::move(weight), linear), parts.columns);
  linear.scale = Own(Transposed(parts.views[1]), linear);
  Tensor zeros = awq ? AwqZeros(parts.views[2], parts.rows)
                     : GptqZeros(parts.views[2], parts.rows, quant_.zero_minus_one);
  const auto* begin = zeros.Ptr<uint8_t>();
  // A weight without zero points has an implicit zero point of 8; kernels for it are simpler.
  if (quant_.symmetric &&
      std::all_of(begin, begin + zeros.bytes(), [](uint8_t zero) { return zero == 8; }))
    return {};
  linear.zero = Own(std::move(zeros), linear);
  return {};
}

Result<Linear> WeightLoader::Bind(const StackPart& part, const WeightSlice& slice) const {
  LATTE_ASSIGN_OR_RETURN(const Parts parts, FetchParts(part));
  const StoredMatrix& stored = parts.stored;
  const bool int4 = stored.form == MatrixForm::kPacked4 || stored.form == MatrixForm::kAwq ||
                    stored.form == MatrixForm::kGptq;
  if (int4 && part.columns % 2 != 0)
    return Unsupported(fmt::format("tensor '{}': expected an even number of columns, found {}",
                                   parts.name(0), part.columns));
  Linear linear;
  if (stored.form == MatrixForm::kPlain)
    linear.weight = parts.views[0];
  else if (stored.form == MatrixForm::kF8)
    LATTE_RETURN_IF_ERROR(BindF8(parts, linear));
  else if (stored.form == MatrixForm::kI8)
    LATTE_RETURN_IF_ERROR(BindInt8(parts, linear));
  else if (stored.form == MatrixForm::kAwq || stored.form == MatrixForm::kGptq)
    LATTE_RETURN_IF_ERROR(BindAcross(parts, linear));
  else
    LATTE_RETURN_IF_ERROR(BindPacked(parts, linear));
  linear.format = {linear.weight.dtype, stored.block_rows, stored.block_columns};
  linear.weight = linear.weight.Slice(0, part.row_begin, part.row_begin + part.rows);
  linear.row_begin = part.row_begin;
  LATTE_RETURN_IF_ERROR(Cut(part.name, slice, linear));
  Place(linear);
  return linear;
}

void WeightLoader::Place(Linear& linear) const {
  if (weights_ == nullptr || weights_->device().is_host()) return;
  for (TensorView* view : {&linear.weight, &linear.scale, &linear.zero})
    *view = weights_->Place(*view);
  linear.owned.clear();  // in host memory
}

Result<Linear> WeightLoader::Matrix(const std::string& name, int64_t rows, int64_t columns,
                                    const WeightSlice& slice) const {
  return Bind({.name = name, .stack_rows = rows, .columns = columns, .rows = rows}, slice);
}

Result<Linear> WeightLoader::FromStack(const StackPart& part, const WeightSlice& slice) const {
  return Bind(part, slice);
}

Result<TensorView> WeightLoader::FetchVector(const std::string& name, int64_t size) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView stored, Fetch(name, {&size, 1}));
  if (!IsPlain(stored.dtype))
    return Unsupported(
        fmt::format("tensor '{}': expected F32, F16 or BF16, found {}", name, Name(stored.dtype)));
  return stored;
}

Result<TensorView> WeightLoader::Vector(const std::string& name, int64_t size) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView stored, FetchVector(name, size));
  return weights_ == nullptr ? stored : weights_->Place(stored);
}

Result<Tensor> WeightLoader::FloatVector(const std::string& name, int64_t size) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView stored, FetchVector(name, size));
  Tensor out(DType::kF32, {size});
  for (int64_t i = 0; i < size; ++i)
    out.Ptr<float>()[i] = LoadElement(stored.data, stored.dtype, i);
  return weights_ == nullptr ? std::move(out) : weights_->PlaceOwned(std::move(out));
}

}  // namespace latte
