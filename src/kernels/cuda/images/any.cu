// Entry points of the kernels for every GPU.
#include "src/kernels/cuda/any/bodies.cuh"
#include "src/kernels/cuda/list.h"

#define LATTE_CUDA_ENTRY_POINT(kernel, params, threads)                 \
  extern "C" LATTE_KERNEL(threads)                                      \
      latte_##kernel(const LATTE_GRID_CONSTANT latte::cuda::params p) { \
    latte::cuda::kernel(p);                                             \
  }
LATTE_CUDA_KERNELS(LATTE_CUDA_ENTRY_POINT)
