// Parameters of kernels, as the driver copies them: plain data of at most 4 KiB. Pointers are addresses of
// the device; strides count elements. The ops of src/kernels/params say what each kernel computes.
#pragma once

#include <cstdint>

namespace latte::cuda {

// Types of numbers.
enum class Element : int32_t { kF32, kBF16, kF16, kI8, kI32, kI64 };

}  // namespace latte::cuda
