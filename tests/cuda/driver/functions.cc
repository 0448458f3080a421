// The table of the emulated driver: every kernel of the list, compiled by this compiler.
#include <cstring>

#include "bench/gpu_check/probes.cuh"
#include "src/kernels/cuda/any/bodies.cuh"
#include "src/kernels/cuda/list.h"
#include "tests/cuda/driver/state.h"

namespace latte::emulator {
namespace {

template <class Params, void (*kBody)(const Params&)>
void RunBody(const void* bytes) {
  Params params;
  std::memcpy(&params, bytes, sizeof(params));
  kBody(params);
}

}  // namespace

std::vector<FunctionState> MakeFunctions() {
  return {
#define LATTE_EMULATED_FUNCTION(kernel, params, threads) \
  {"latte_" #kernel, sizeof(cuda::params), threads, RunBody<cuda::params, cuda::kernel>},
      LATTE_CUDA_KERNELS(LATTE_EMULATED_FUNCTION) LATTE_CUDA_PROBES(LATTE_EMULATED_FUNCTION)
#undef LATTE_EMULATED_FUNCTION
  };
}

}  // namespace latte::emulator
