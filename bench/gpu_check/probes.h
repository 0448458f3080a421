// The list of probes, and their params. In the form of src/kernels/cuda/list.h.
#pragma once

#include <cstdint>

namespace latte::cuda {

inline constexpr int kProbeLanes = 128;
inline constexpr int kProbeWords = 16;  // written by a lane; others stay 0

struct ProbeParams {
  const float* in;  // [kProbeLanes]
  uint32_t* out;    // [kProbeLanes, kProbeWords]
};

}  // namespace latte::cuda

#define LATTE_CUDA_PROBES(X)           \
  X(ProbeArithmetic, ProbeParams, 128) \
  X(ProbeShuffles, ProbeParams, 128)   \
  X(ProbeShared, ProbeParams, 128)     \
  X(ProbeMatrix, ProbeParams, 128)
