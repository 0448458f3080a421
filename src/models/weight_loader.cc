#include "src/models/weight_loader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/checkpoint/formats/common/stored_values.h"
#include "src/checkpoint/quant_tensors.h"
#include "src/tensor/dtype.h"

namespace latte {
namespace {

// Matrix `index` of a stack [count, rows, columns].
TensorView MatrixOf(const TensorView& stack, int64_t index) {
  return TensorView(stack.RowBytes(index), stack.dtype, {stack.shape[1], stack.shape[2]});
}

// Writes value j of a row of a plain type.
void Store(float value, const TensorView& to, int64_t i, int64_t j) {
  if (to.dtype == DType::kF32)
    to.Row<float>(i)[j] = value;
  else
    to.Row<uint16_t>(i)[j] = FloatTo16(value, to.dtype);
}

// Matrix `index` of `stack` [B, N, K] to `to` [N, K], of a plain type.
void CopyRows(const TensorView& stack, int64_t index, const TensorView& to) {
  for (int64_t i = 0; i < to.shape[0]; ++i) {
    const std::byte* const row = stack.RowBytes(index) + i * stack.stride[1] * SizeOf(stack.dtype);
    for (int64_t j = 0; j < to.shape[1]; ++j) Store(LoadElement(row, stack.dtype, j), to, i, j);
  }
}

// The same to `to` [K, N].
void CopyTransposed(const TensorView& stack, int64_t index, const TensorView& to) {
  for (int64_t i = 0; i < to.shape[1]; ++i) {
    const std::byte* const row = stack.RowBytes(index) + i * stack.stride[1] * SizeOf(stack.dtype);
    for (int64_t j = 0; j < to.shape[0]; ++j) Store(LoadElement(row, stack.dtype, j), to, j, i);
  }
}

LoadedMatrix RoundedToBf16(const LoadedMatrix& matrix, ThreadPool* threads) {
  LoadedMatrix out;
  out.weight = out.Own(Tensor(DType::kBF16, {matrix.rows(), matrix.columns()}));
  out.block_columns = 1;
  ForAll(matrix.rows(), threads, [&](int64_t i) {
    const std::byte* const row = matrix.weight.RowBytes(i);
    for (int64_t j = 0; j < matrix.columns(); ++j)
      Store(LoadElement(row, matrix.weight.dtype, j), out.weight, i, j);
  });
  return out;
}

// Names the part among all matrices of a checkpoint.
std::string KeyOf(const WeightLoader::StackPart& part) {
  return fmt::format("{}/{}/{}", part.name, part.index, part.row_begin);
}

// The matrix without the memory that its views may be in.
LoadedMatrix ViewsOf(const LoadedMatrix& matrix) {
  LoadedMatrix out;
  out.weight = matrix.weight;
  out.scale = matrix.scale;
  out.zero = matrix.zero;
  out.block_rows = matrix.block_rows;
  out.block_columns = matrix.block_columns;
  out.row_begin = matrix.row_begin;
  out.column_begin = matrix.column_begin;
  return out;
}

Status Cut(const std::string& name, const WeightSlice& slice, LoadedMatrix& matrix) {
  const bool by_rows = slice.along == WeightSlice::Along::kRows;
  const int64_t size = by_rows ? matrix.rows() : matrix.columns();
  if (slice.count < 1 || size % slice.unit != 0 || slice.index < 0 || slice.index >= slice.count)
    return InvalidArgument(fmt::format(
        "tensor '{}': expected {} {} to divide into {} parts in units of {}, of "
        "which part {} is one; take another number of ranks",
        name, size, by_rows ? "rows" : "columns", slice.count, slice.unit, slice.index));
  const int64_t begin = slice.Begin(size);
  const int64_t end = slice.End(size);
  if (by_rows) {
    matrix.KeepRows(begin, end);
    if (slice.count > 1) matrix.FreeOtherRows();
    return {};
  }
  const int64_t unit = matrix.ColumnUnit();
  if (begin % unit != 0 || (end % unit != 0 && end != size))
    return InvalidArgument(
        fmt::format("tensor '{}': expected {} parts of {} columns to hold whole groups of {}, "
                    "found columns {} to {}; take another number of ranks",
                    name, slice.count, size, unit, begin, end));
  matrix.KeepColumns(begin, end);
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

Result<MappedMatrix> WeightLoader::MapMatrix(const StackPart& part) const {
  std::vector<int64_t> shape = {part.stack_rows, part.columns};
  if (part.count > 0) shape.insert(shape.begin(), part.count);
  MappedMatrix out = {.stored = FindMatrix(quant_, part.name, shape, checkpoint_.tensors()),
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

Result<LoadedMatrix> WeightLoader::ReadPart(const StackPart& part, const WeightSlice& slice) const {
  LATTE_ASSIGN_OR_RETURN(const MappedMatrix mapped, MapMatrix(part));
  const QuantScheme& scheme = mapped.stored.scheme;
  LATTE_ASSIGN_OR_RETURN(LoadedMatrix matrix, scheme.format->load(mapped, threads_));
  matrix.block_rows = scheme.block_rows;
  matrix.block_columns = scheme.block_columns;
  matrix.KeepRows(part.row_begin, part.row_begin + part.rows);
  LATTE_RETURN_IF_ERROR(Cut(part.name, slice, matrix));
  Count(KeyOf(part), matrix.bytes());
  return matrix;
}

Result<Linear> WeightLoader::Place(const std::string& key, const Read& read) const {
  Linear out;
  if (weights_ == nullptr || weights_->device().is_host()) {
    LATTE_ASSIGN_OR_RETURN(out.matrix, read());
    return out;
  }
  LoadedMatrix host;
  if (std::optional<LoadedMatrix> kept = weights_->TakeConverted(key)) {
    host = std::move(*kept);
  } else {
    LATTE_ASSIGN_OR_RETURN(host, read());
  }
  out.matrix = ViewsOf(host);
  const bool converted = !host.owned.empty();
  for (TensorView* view : {&out.matrix.weight, &out.matrix.scale, &out.matrix.zero})
    *view = converted ? weights_->PlaceCopy(*view) : weights_->Place(*view);
  if (converted && weights_->measures()) weights_->KeepConverted(key, std::move(host));
  return out;
}

Result<Linear> WeightLoader::Matrix(const std::string& name, int64_t rows, int64_t columns,
                                    const WeightSlice& slice) const {
  return FromStack({.name = name, .stack_rows = rows, .columns = columns, .rows = rows}, slice);
}

Result<Linear> WeightLoader::FromStack(const StackPart& part, const WeightSlice& slice) const {
  return Place(KeyOf(part), [&] { return ReadPart(part, slice); });
}

Result<Linear> WeightLoader::KvB(const std::string& name, const MlaDims& dims,
                                 const WeightSlice& slice) const {
  return Place(name + ".kv_b_proj", [&] { return ReadKvB(name, dims, slice); });
}

Result<LoadedMatrix> WeightLoader::ReadKvB(const std::string& name, const MlaDims& dims,
                                           const WeightSlice& slice) const {
  if (Has(name + ".k_b_proj.weight")) return JoinKvB(name, dims, slice);
  const int64_t rows = dims.h * (dims.n + dims.v);
  LATTE_ASSIGN_OR_RETURN(
      LoadedMatrix matrix,
      ReadPart(
          {.name = name + ".kv_b_proj.weight", .stack_rows = rows, .columns = dims.c, .rows = rows},
          slice));
  if (IsBlocks(matrix.weight.dtype)) return RoundedToBf16(matrix, threads_);
  return matrix;
}

Result<LoadedMatrix> WeightLoader::JoinKvB(const std::string& name, const MlaDims& dims,
                                           const WeightSlice& slice) const {
  const std::string k_name = name + ".k_b_proj.weight";
  const std::string v_name = name + ".v_b_proj.weight";
  LATTE_ASSIGN_OR_RETURN(const TensorView k, Fetch(k_name, {{dims.h, dims.c, dims.n}}));
  LATTE_ASSIGN_OR_RETURN(const TensorView v, Fetch(v_name, {{dims.h, dims.v, dims.c}}));
  for (const auto& [part, of] : {std::pair(&k, &k_name), std::pair(&v, &v_name)})
    if (!IsPlain(part->dtype) && !IsBlocks(part->dtype))
      return Unsupported(fmt::format("tensor '{}': expected F32, F16, BF16 or blocks, found {}",
                                     *of, Name(part->dtype)));
  const int64_t rows = dims.n + dims.v;
  const int64_t begin = slice.Begin(dims.h * rows) / rows;
  const int64_t heads = slice.End(dims.h * rows) / rows - begin;
  const DType dtype = IsPlain(k.dtype) && k.dtype == v.dtype ? k.dtype : DType::kBF16;
  LoadedMatrix out;
  const TensorView all = out.Own(Tensor(dtype, {heads * rows, dims.c}));
  ForAll(heads, threads_, [&](int64_t head) {
    const TensorView own = all.Slice(0, head * rows, (head + 1) * rows);
    CopyTransposed(k, begin + head, own.Slice(0, 0, dims.n));
    CopyRows(v, begin + head, own.Slice(0, dims.n, rows));
  });
  out.weight = all;
  out.block_columns = 1;
  Count(k_name, out.bytes());
  return out;
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
  Count(name, size * SizeOf(stored.dtype));
  return weights_ == nullptr ? stored : weights_->Place(stored);
}

Result<Tensor> WeightLoader::FloatVector(const std::string& name, int64_t size,
                                         const WeightSlice& slice, double factor) const {
  LATTE_ASSIGN_OR_RETURN(const TensorView stored, FetchVector(name, size));
  const int64_t begin = slice.Begin(size);
  Tensor out(DType::kF32, {slice.End(size) - begin});
  for (int64_t i = 0; i < out.view().elements(); ++i)
    out.Ptr<float>()[i] = static_cast<float>(
        factor * static_cast<double>(LoadElement(stored.data, stored.dtype, begin + i)));
  Count(name, out.bytes());
  return weights_ == nullptr ? std::move(out) : weights_->PlaceOwned(std::move(out));
}

}  // namespace latte
