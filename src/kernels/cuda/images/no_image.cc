#include "src/kernels/cuda/images/image.h"

namespace latte::cuda {

std::span<const std::byte> KernelImage() {
  static constexpr std::byte kNone[1] = {};
  return kNone;
}

}  // namespace latte::cuda
