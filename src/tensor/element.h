// One element of a row as f32, for any dtype. For code that does not need speed; kernels read whole
// vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/tensor/dtype.h"

namespace latte {

// Element i of a row. Any alignment.
inline float LoadElement(const std::byte* row, DType dtype, int64_t i) {
  if (dtype == DType::kF32) {
    float value;
    __builtin_memcpy(&value, row + i * 4, 4);
    return value;
  }
  if (dtype == DType::kF8E4M3) return F8E4M3ToFloat(static_cast<uint8_t>(row[i]));
  if (dtype == DType::kF8E4M3Fnuz) return F8E4M3FnuzToFloat(static_cast<uint8_t>(row[i]));
  if (dtype == DType::kI8) return static_cast<float>(static_cast<int8_t>(row[i]));
  if (dtype == DType::kU4)
    return static_cast<float>(static_cast<int>(row[i / 2]) >> i % 2 * 4 & 15);
  uint16_t bits;
  __builtin_memcpy(&bits, row + i * 2, 2);
  return dtype == DType::kBF16 ? BF16ToFloat(bits) : F16ToFloat(bits);
}

}  // namespace latte
