#include "src/kernels/cuda/launch/launch.h"

#include "src/base/check.h"
#include "src/base/math.h"

namespace latte::cuda {

Element ElementOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Element::kF32;
    case DType::kBF16:
      return Element::kBF16;
    case DType::kF16:
      return Element::kF16;
    case DType::kI8:
      return Element::kI8;
    default:
      LATTE_CHECK(false, "no kernel reads {}", Name(dtype));
      return Element::kF32;
  }
}

Grid LanesGrid(int64_t lanes) { return {CeilDiv(lanes, int64_t{128})}; }
Grid WarpsGrid(int64_t rows) { return {CeilDiv(rows, int64_t{4})}; }

}  // namespace latte::cuda
