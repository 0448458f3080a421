// Parameters of kernels, as the driver copies them: plain data of at most 4 KiB. Pointers are
// addresses of the device; strides count elements. The ops of src/kernels/params say what each
// kernel computes.
#pragma once

#include "src/tensor/dtype_enum.h"

namespace latte::cuda {

using Element = DType;

}  // namespace latte::cuda
