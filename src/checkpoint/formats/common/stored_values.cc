#include "src/checkpoint/formats/common/stored_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "src/base/math.h"

namespace latte {
namespace {

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

}  // namespace

QuantScheme WithGroup(const QuantScheme& scheme, int64_t columns) {
  QuantScheme out = scheme;
  out.block_columns = scheme.block_columns > 0 ? std::min(scheme.block_columns, columns) : columns;
  return out;
}

Status CheckEvenColumns(const MappedMatrix& matrix) {
  if (matrix.columns % 2 == 0) return {};
  return Unsupported(fmt::format("tensor '{}': expected an even number of columns, found {}",
                                 matrix.name(0), matrix.columns));
}

Status CheckOrder(const MappedMatrix& matrix, size_t i) {
  const TensorView& g_idx = matrix.views[i];
  if (g_idx.empty()) return {};
  const int64_t group = matrix.stored.scheme.block_columns;
  const int64_t columns = g_idx.shape[0];
  for (int64_t k = 0; k < columns; ++k) {
    const int64_t found = IntAt(g_idx, k);
    if (found < 0 || found >= CeilDiv(columns, group))
      return Corrupt(fmt::format("tensor '{}': expected groups of 0 to {}, found {} at [{}]",
                                 matrix.name(i), CeilDiv(columns, group) - 1, found, k));
    if (found != k / group)
      return Unsupported(fmt::format(
          "tensor '{}': expected columns in their own order, found group {} at [{}]: weights "
          "ordered by activation (desc_act, actorder) are not read; use a copy without",
          matrix.name(i), found, k));
  }
  return {};
}

Status CheckShape(const MappedMatrix& matrix, size_t i) {
  const TensorView& shape = matrix.views[i];
  if (shape.empty() || (IntAt(shape, 0) == matrix.rows && IntAt(shape, 1) == matrix.columns))
    return {};
  return Corrupt(fmt::format("tensor '{}': expected [{}, {}], found [{}, {}]", matrix.name(i),
                             matrix.rows, matrix.columns, IntAt(shape, 0), IntAt(shape, 1)));
}

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

Tensor Transposed(const TensorView& scales) {
  const auto size = static_cast<size_t>(SizeOf(scales.dtype));
  Tensor out(scales.dtype, {scales.shape[1], scales.shape[0]});
  for (int64_t g = 0; g < scales.shape[0]; ++g)
    for (int64_t i = 0; i < scales.shape[1]; ++i)
      std::memcpy(out.view().RowBytes(i) + static_cast<size_t>(g) * size,
                  scales.RowBytes(g) + static_cast<size_t>(i) * size, size);
  return out;
}

TensorView FirstColumns(const TensorView& weight, int64_t columns) {
  return weight.Slice(1, 0, columns / ValuesPerElement(weight.dtype));
}

uint32_t WordAt(const TensorView& words, int64_t row, int64_t column) {
  uint32_t word;
  std::memcpy(&word, words.RowBytes(row) + column * 4, sizeof(word));
  return word;
}

void ForAll(int64_t count, ThreadPool* threads, const std::function<void(int64_t)>& task) {
  if (threads != nullptr) return threads->ParallelFor(count, task);
  for (int64_t i = 0; i < count; ++i) task(i);
}

}  // namespace latte
