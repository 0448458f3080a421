// Numbers of any type in global memory, as f32.
#pragma once

#include "src/kernels/cuda/params/types.h"
#include "src/kernels/cuda/words/device.cuh"
#include "src/tensor/float_bits.h"

namespace latte::cuda {

LATTE_DEVICE int BytesOf(Element type) {
  return type == Element::kI8                             ? 1
         : type == Element::kF32 || type == Element::kI32 ? 4
         : type == Element::kI64                          ? 8
                                                          : 2;
}

// Element i of `base`. Requires: f32, bf16 or f16.
LATTE_DEVICE float LoadElement(const void* base, Element type, int64_t i) {
  if (type == Element::kF32) return LoadGlobal(static_cast<const float*>(base) + i);
  const uint16_t bits = LoadGlobal(static_cast<const uint16_t*>(base) + i);
  return type == Element::kBF16 ? BF16ToFloat(bits) : F16ToFloat(bits);
}
LATTE_DEVICE void StoreElement(void* base, Element type, int64_t i, float value) {
  if (type == Element::kF32) return StoreGlobal(static_cast<float*>(base) + i, value);
  StoreGlobal(static_cast<uint16_t*>(base) + i,
              type == Element::kBF16 ? FloatToBF16(value) : FloatToF16(value));
}

}  // namespace latte::cuda
