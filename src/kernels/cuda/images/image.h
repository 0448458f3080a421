// The compiled kernels of this build.
#pragma once

#include <cstddef>
#include <span>

namespace latte::cuda {

// A fat binary, as cuModuleLoadData takes it, and a zero; the zero alone in a build without CUDA
// kernels.
std::span<const std::byte> KernelImage();

}  // namespace latte::cuda
