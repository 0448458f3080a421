// Our declarations of the driver against NVIDIA's, where they are installed: the same number of
// arguments, each of the same size, and the same values of constants.
#include <cuda.h>

#include "src/kernels/cuda/words/types.h"
#include "src/tensor/cuda/driver_abi.h"

namespace latte::cuda {
namespace {

template <class Ours, class Theirs>
constexpr bool kSame = false;
template <class R, class... As, class S, class... Bs>
requires(sizeof...(As) == sizeof...(Bs)) constexpr bool kSame<R (*)(As...), S (*)(Bs...)> =
    sizeof(R) == sizeof(S) && ((sizeof(As) == sizeof(Bs)) && ...);

#define LATTE_CHECK_ABI(name, arguments) \
  static_assert(kSame<abi::Code(*) arguments, decltype(&::name)>, #name);
LATTE_CUDA_DRIVER(LATTE_CHECK_ABI)
#undef LATTE_CHECK_ABI

static_assert(abi::kSuccess == CUDA_SUCCESS && abi::kInvalidValue == CUDA_ERROR_INVALID_VALUE &&
              abi::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY &&
              abi::kNotInitialized == CUDA_ERROR_NOT_INITIALIZED &&
              abi::kNoDevice == CUDA_ERROR_NO_DEVICE &&
              abi::kInvalidImage == CUDA_ERROR_INVALID_IMAGE &&
              abi::kInvalidContext == CUDA_ERROR_INVALID_CONTEXT &&
              abi::kNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU &&
              abi::kInvalidHandle == CUDA_ERROR_INVALID_HANDLE &&
              abi::kNotFound == CUDA_ERROR_NOT_FOUND && abi::kNotReady == CUDA_ERROR_NOT_READY &&
              abi::kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS &&
              abi::kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED &&
              abi::kStreamCaptureUnsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
              abi::kStreamCaptureInvalidated == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED &&
              abi::kCapturedEvent == CUDA_ERROR_CAPTURED_EVENT);
static_assert(abi::kMaxSharedMemoryPerBlockOptin ==
                  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN &&
              abi::kMultiprocessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
              abi::kComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              abi::kComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR &&
              abi::kMaxDynamicSharedSizeBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
              abi::kStreamNonBlocking == CU_STREAM_NON_BLOCKING &&
              abi::kEventDefault == CU_EVENT_DEFAULT &&
              abi::kEventDisableTiming == CU_EVENT_DISABLE_TIMING &&
              abi::kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(abi::kMapU8 == CU_TENSOR_MAP_DATA_TYPE_UINT8 &&
              abi::kMapF16 == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 &&
              abi::kMapF32 == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 &&
              abi::kMapBf16 == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 &&
              abi::kMapInterleaveNone == CU_TENSOR_MAP_INTERLEAVE_NONE &&
              abi::kMapInterleave32 == CU_TENSOR_MAP_INTERLEAVE_32B &&
              abi::kMapSwizzleNone == CU_TENSOR_MAP_SWIZZLE_NONE &&
              abi::kMapSwizzle32 == CU_TENSOR_MAP_SWIZZLE_32B &&
              abi::kMapSwizzle64 == CU_TENSOR_MAP_SWIZZLE_64B &&
              abi::kMapSwizzle128 == CU_TENSOR_MAP_SWIZZLE_128B &&
              abi::kMapL2PromotionNone == CU_TENSOR_MAP_L2_PROMOTION_NONE &&
              abi::kMapL2Promotion256 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
              abi::kMapFillZeros == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE &&
              abi::kMapFillNan == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA &&
              sizeof(TensorMap) == sizeof(CUtensorMap));

}  // namespace
}  // namespace latte::cuda
