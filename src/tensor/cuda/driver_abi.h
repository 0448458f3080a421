// The functions of the CUDA driver that Latte calls, declared here so that it builds without
// NVIDIA's headers. tests/cuda/check_abi.cc compares them with cuda.h if it is installed. Source:
// CUDA Driver API 13.0, which drivers have from version 580.
#pragma once

#include <cstddef>
#include <cstdint>

namespace latte::cuda::abi {

using Code = int;                // CUresult
using Device = int;              // CUdevice
using Ptr = unsigned long long;  // CUdeviceptr
using Context = void*;
using Stream = void*;
using Event = void*;
using Module = void*;
using Function = void*;
using Graph = void*;
using GraphExec = void*;

inline constexpr Code kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3,
                      kNoDevice = 100, kInvalidImage = 200, kInvalidContext = 201,
                      kNoBinaryForGpu = 209, kInvalidHandle = 400, kNotFound = 500, kNotReady = 600,
                      kIllegalAddress = 700, kLaunchFailed = 719, kStreamCaptureUnsupported = 900,
                      kStreamCaptureInvalidated = 901, kCapturedEvent = 907;

// CUdevice_attribute
inline constexpr int kMaxSharedMemoryPerBlockOptin = 97, kMultiprocessorCount = 16,
                     kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76;
// CUfunction_attribute
inline constexpr int kMaxDynamicSharedSizeBytes = 8;
// Flags of streams and events: neither waits for the default stream; no time is taken.
inline constexpr unsigned kStreamNonBlocking = 1, kEventDefault = 0, kEventDisableTiming = 2;
// CUstreamCaptureMode: unsafe calls of this thread alone are refused.
inline constexpr int kCaptureThreadLocal = 1;

// CUtensorMapDataType
inline constexpr int kMapU8 = 0, kMapF16 = 6, kMapF32 = 7, kMapBf16 = 9;
// CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill
inline constexpr int kMapInterleaveNone = 0, kMapInterleave32 = 2;
inline constexpr int kMapSwizzleNone = 0, kMapSwizzle32 = 1, kMapSwizzle64 = 2, kMapSwizzle128 = 3;
inline constexpr int kMapL2PromotionNone = 0, kMapL2Promotion256 = 3;
inline constexpr int kMapFillZeros = 0, kMapFillNan = 1;

}  // namespace latte::cuda::abi

// X(name, arguments): every function, which returns a Code.
#define LATTE_CUDA_DRIVER(X)                                                                    \
  X(cuInit, (unsigned))                                                                         \
  X(cuDriverGetVersion, (int*))                                                                 \
  X(cuGetErrorName, (abi::Code, const char**))                                                  \
  X(cuGetErrorString, (abi::Code, const char**))                                                \
  X(cuDeviceGetCount, (int*))                                                                   \
  X(cuDeviceGet, (abi::Device*, int))                                                           \
  X(cuDeviceGetName, (char*, int, abi::Device))                                                 \
  X(cuDeviceGetAttribute, (int*, int, abi::Device))                                             \
  X(cuDeviceTotalMem_v2, (std::size_t*, abi::Device))                                           \
  X(cuDevicePrimaryCtxRetain, (abi::Context*, abi::Device))                                     \
  X(cuDevicePrimaryCtxRelease_v2, (abi::Device))                                                \
  X(cuCtxSetCurrent, (abi::Context))                                                            \
  X(cuMemGetInfo_v2, (std::size_t*, std::size_t*))                                              \
  X(cuMemAlloc_v2, (abi::Ptr*, std::size_t))                                                    \
  X(cuMemFree_v2, (abi::Ptr))                                                                   \
  X(cuMemHostAlloc, (void**, std::size_t, unsigned))                                            \
  X(cuMemFreeHost, (void*))                                                                     \
  X(cuMemcpyHtoDAsync_v2, (abi::Ptr, const void*, std::size_t, abi::Stream))                    \
  X(cuMemcpyDtoHAsync_v2, (void*, abi::Ptr, std::size_t, abi::Stream))                          \
  X(cuMemcpyDtoDAsync_v2, (abi::Ptr, abi::Ptr, std::size_t, abi::Stream))                       \
  X(cuMemsetD8Async, (abi::Ptr, unsigned char, std::size_t, abi::Stream))                       \
  X(cuStreamCreate, (abi::Stream*, unsigned))                                                   \
  X(cuStreamDestroy_v2, (abi::Stream))                                                          \
  X(cuStreamSynchronize, (abi::Stream))                                                         \
  X(cuStreamWaitEvent, (abi::Stream, abi::Event, unsigned))                                     \
  X(cuStreamBeginCapture_v2, (abi::Stream, int))                                                \
  X(cuStreamEndCapture, (abi::Stream, abi::Graph*))                                             \
  X(cuEventCreate, (abi::Event*, unsigned))                                                     \
  X(cuEventDestroy_v2, (abi::Event))                                                            \
  X(cuEventRecord, (abi::Event, abi::Stream))                                                   \
  X(cuEventQuery, (abi::Event))                                                                 \
  X(cuEventSynchronize, (abi::Event))                                                           \
  X(cuEventElapsedTime_v2, (float*, abi::Event, abi::Event))                                    \
  X(cuModuleLoadData, (abi::Module*, const void*))                                              \
  X(cuModuleUnload, (abi::Module))                                                              \
  X(cuModuleGetFunction, (abi::Function*, abi::Module, const char*))                            \
  X(cuFuncSetAttribute, (abi::Function, int, int))                                              \
  X(cuLaunchKernel, (abi::Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     unsigned, abi::Stream, void**, void**))                                    \
  X(cuGraphInstantiateWithFlags, (abi::GraphExec*, abi::Graph, unsigned long long))             \
  X(cuGraphLaunch, (abi::GraphExec, abi::Stream))                                               \
  X(cuGraphExecDestroy, (abi::GraphExec))                                                       \
  X(cuGraphDestroy, (abi::Graph))                                                               \
  X(cuTensorMapEncodeTiled,                                                                     \
    (void*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,                   \
     const std::uint32_t*, const std::uint32_t*, int, int, int, int))
