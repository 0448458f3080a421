// The kernels of this build on one GPU.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "latte/status.h"

#include "src/kernels/cuda/list.h"
#include "src/tensor/cuda/cuda_device.h"

namespace latte::cuda {

enum class KernelId {
#define LATTE_CUDA_ID(kernel, params, threads) k##kernel,
  LATTE_CUDA_KERNELS(LATTE_CUDA_ID)
#undef LATTE_CUDA_ID
};

struct KernelEntry {
  std::string_view name;
  int threads;
};
inline constexpr KernelEntry kKernelEntries[] = {
#define LATTE_CUDA_ENTRY(kernel, params, threads) {#kernel, threads},
    LATTE_CUDA_KERNELS(LATTE_CUDA_ENTRY)
#undef LATTE_CUDA_ENTRY
};
inline constexpr size_t kKernelCount = std::size(kKernelEntries);

// Blocks of a launch.
struct Grid {
  int64_t x = 1, y = 1, z = 1;
};
inline constexpr int64_t kMostBlocksX = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMostBlocksYz = 65535;

namespace internal {
template <KernelId kId>
struct ParamsOf;
#define LATTE_CUDA_PARAMS(kernel, params, threads)                  \
  template <>                                                       \
  struct ParamsOf<KernelId::k##kernel> {                            \
    using Type = params;                                            \
    static_assert(sizeof(params) <= 4096 && alignof(params) <= 64); \
  };
LATTE_CUDA_KERNELS(LATTE_CUDA_PARAMS)
#undef LATTE_CUDA_PARAMS
}  // namespace internal

// Immutable after Load; the device must outlive it.
class KernelSet {
 public:
  // Errors: kUnavailable if this build has no kernels for the GPU.
  [[nodiscard]] static Result<std::unique_ptr<const KernelSet>> Load(const CudaDevice& device);
  ~KernelSet();
  KernelSet(const KernelSet&) = delete;
  KernelSet& operator=(const KernelSet&) = delete;

  const CudaDevice& device() const { return device_; }

  // Enqueues a kernel; an empty grid is nothing to do. Requires: the grid is within the limits
  // above, and the shared memory within the GPU's. Throws DeviceError.
  template <KernelId kId>
  void Launch(const Grid& grid, const typename internal::ParamsOf<kId>::Type& params,
              DeviceStream stream, int64_t shared_bytes = 0) const {
    LaunchAny(kId, grid, shared_bytes, &params, stream);
  }

 private:
  explicit KernelSet(const CudaDevice& device) : device_(device) {}
  Status FindKernels();
  void LaunchAny(KernelId id, const Grid& grid, int64_t shared_bytes, const void* params,
                 DeviceStream stream) const;

  const CudaDevice& device_;
  bool waits_ = false;  // for each kernel, so that an error names it (LATTE_CUDA_BLOCKING=1)
  abi::Module module_ = nullptr;
  std::array<abi::Function, kKernelCount> functions_ = {};
};

}  // namespace latte::cuda
