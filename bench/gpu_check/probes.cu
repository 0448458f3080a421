// Entry points of the probes.
#include "bench/gpu_check/probes.cuh"

#define LATTE_CUDA_ENTRY_POINT(kernel, params, threads)                 \
  extern "C" LATTE_KERNEL(threads)                                      \
      latte_##kernel(const LATTE_GRID_CONSTANT latte::cuda::params p) { \
    latte::cuda::kernel(p);                                             \
  }
LATTE_CUDA_PROBES(LATTE_CUDA_ENTRY_POINT)
