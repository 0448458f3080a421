// Reads and repacks the tensors of weight formats. Tensors of a file may be unaligned.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "latte/status.h"

#include "src/base/thread_pool.h"
#include "src/checkpoint/formats/common/weight_format.h"
#include "src/tensor/tensor.h"

namespace latte {

// `scheme` with the number of columns that share a scale in rows of `columns`.
QuantScheme WithGroup(const QuantScheme& scheme, int64_t columns);

// Errors: kUnsupported if the matrix has an odd number of columns: two 4-bit values share a byte.
[[nodiscard]] Status CheckEvenColumns(const MappedMatrix& matrix);

// Tensor `i`, g_idx: whether the columns are in their original order, so that group g is columns
// [g·group, (g+1)·group). Errors: kCorrupt, kUnsupported.
[[nodiscard]] Status CheckOrder(const MappedMatrix& matrix, size_t i);

// Tensor `i`, the stored shape: whether it is that of the matrix. Errors: kCorrupt.
[[nodiscard]] Status CheckShape(const MappedMatrix& matrix, size_t i);

// Scales as f32. Errors: kCorrupt naming the tensor if one is not above 0.
[[nodiscard]] Result<Tensor> FloatScales(const std::string& name, const TensorView& stored);

// `scales` [groups, N] transposed to [N, groups]. Requires: elements of 2 or 4 bytes.
Tensor Transposed(const TensorView& scales);

// The first `columns` values of rows that may be longer.
TensorView FirstColumns(const TensorView& weight, int64_t columns);

inline constexpr int64_t kNibbles = 8;  // 4-bit values in a word of 32 bits
uint32_t WordAt(const TensorView& words, int64_t row, int64_t column);
// The 4-bit value at a place of a word, from its low bits on.
inline uint8_t Nibble(uint32_t word, int64_t place) {
  return static_cast<uint8_t>(word >> (4 * place) & 15u);
}

// Calls task(i) for 0 ≤ i < count, on the threads if there are any.
void ForAll(int64_t count, ThreadPool* threads, const std::function<void(int64_t)>& task);

inline constexpr int64_t kLineWords = 16;  // words of a cache line, for tasks

}  // namespace latte
