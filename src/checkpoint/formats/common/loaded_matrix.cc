#include "src/checkpoint/formats/common/loaded_matrix.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

int64_t BytesEach(const TensorView& values) { return values.empty() ? 0 : SizeOf(values.dtype); }

int64_t BlocksTouched(int64_t begin, int64_t size, int64_t block) {
  return size == 0 ? 0 : (begin + size - 1) / block - begin / block + 1;
}

}  // namespace

int64_t LoadedMatrix::bytes() const {
  const int64_t blocks = BlocksTouched(row_begin, rows(), block_rows) *
                         BlocksTouched(column_begin, columns(), block_columns);
  return weight.elements() * SizeOf(weight.dtype) + blocks * (BytesEach(scale) + BytesEach(zero));
}

TensorView LoadedMatrix::Own(Tensor tensor) {
  owned.push_back(std::move(tensor));
  return owned.back().view();
}

void LoadedMatrix::KeepRows(int64_t begin, int64_t end) {
  weight = weight.Slice(0, begin, end);
  row_begin += begin;
}

LoadedMatrix LoadedMatrix::ViewOfRows(int64_t begin, int64_t end) const {
  LoadedMatrix out{weight, scale, zero, block_rows, block_columns, row_begin, column_begin, {}};
  out.KeepRows(begin, end);
  return out;
}

void LoadedMatrix::KeepColumns(int64_t begin, int64_t end) {
  const int64_t values = ValuesPerElement(weight.dtype);
  weight = weight.Slice(1, begin / values, end / values);
  column_begin += begin;
}

int64_t LoadedMatrix::ColumnUnit() const {
  const int64_t values = ValuesPerElement(weight.dtype);
  // If a whole row shares one scale, only the two values of a byte must stay together.
  return is_integer() && block_columns < columns() ? block_columns : values;
}

void LoadedMatrix::FreeOtherRows() {
  const auto* const first = static_cast<const std::byte*>(weight.data);
  for (Tensor& all : owned) {
    const auto* const begin = static_cast<const std::byte*>(all.view().data);
    if (first < begin || first >= begin + all.bytes()) continue;
    Tensor kept(weight.dtype, {weight.shape[0], weight.shape[1]});
    std::memcpy(kept.view().data, weight.data, static_cast<size_t>(kept.bytes()));
    weight = kept.view();
    all = std::move(kept);
    return;
  }
}

bool LoadedMatrix::IsReadWith(const LoadedMatrix& other) const {
  const auto has_no_scales = [](DType dtype) { return IsPlain(dtype) || IsBlocks(dtype); };
  if (has_no_scales(weight.dtype) && has_no_scales(other.weight.dtype)) return true;
  return weight.dtype == other.weight.dtype && scale.dtype == other.scale.dtype &&
         block_rows == other.block_rows && block_columns == other.block_columns &&
         zero.empty() == other.zero.empty();
}

std::string LoadedMatrix::FormatText() const {
  if (IsBlocks(weight.dtype)) return std::string(Name(weight.dtype));
  return fmt::format("{} in blocks of {}x{}{}", Name(weight.dtype), block_rows, block_columns,
                     zero.empty() ? "" : " with zeros");
}

void LoadedMatrix::ReadRow(int64_t i, float* out) const {
  const std::byte* row = weight.RowBytes(i);
  const DType dtype = weight.dtype;
  for (int64_t j = 0; j < columns(); ++j) out[j] = LoadElement(row, dtype, j);
  if (scale.empty()) return;
  const int64_t block = (row_begin + i) / block_rows;
  for (int64_t group = 0; group * block_columns < columns(); ++group) {
    const int offset = zero.empty() ? InfoOf(dtype).zero : zero.Row<uint8_t>(block)[group];
    const float factor = LoadElement(scale.RowBytes(block), scale.dtype, group);
    const int64_t end = std::min(columns(), (group + 1) * block_columns);
    for (int64_t j = group * block_columns; j < end; ++j)
      out[j] = (out[j] - static_cast<float>(offset)) * factor;
  }
}

}  // namespace latte
