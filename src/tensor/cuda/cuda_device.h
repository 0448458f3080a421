// An NVIDIA GPU as a Device.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "latte/status.h"

#include "src/tensor/cuda/driver.h"
#include "src/tensor/cuda/handles.h"
#include "src/tensor/cuda/pool.h"
#include "src/tensor/cuda/staging.h"
#include "src/tensor/device.h"

namespace latte::cuda {

struct GpuInfo {
  std::string name;            // "NVIDIA H200"
  int compute_capability = 0;  // 90: 9.0
  int multiprocessors = 0;
  int64_t shared_bytes = 0;  // most shared memory of a block
  int64_t memory_bytes = 0;
};

// The GPUs of a driver. Errors: kUnavailable.
[[nodiscard]] Result<std::vector<GpuInfo>> ListGpus(const Driver& driver);

// One stream carries all work. A driver's error throws DeviceError; after it the GPU does no more
// work for this process.
class CudaDevice final : public Device {
 public:
  // Errors: of Driver::Load; kInvalidArgument for a GPU that is not there; kUnavailable for one
  // that does not start.
  [[nodiscard]] static Result<std::unique_ptr<CudaDevice>> Open(int ordinal);
  ~CudaDevice() override;

  const Driver& driver() const { return *driver_; }
  const GpuInfo& info() const { return info_; }
  abi::Context context() const { return context_; }
  std::string Label() const;  // "cuda:0 'NVIDIA H200'"
  // Of the GPU, for all programs. Throws DeviceError.
  int64_t FreeBytes() const;

  // Makes this GPU the one that the calling thread's calls of the driver are for.
  void MakeCurrent() const;
  // The queue that `stream` means.
  abi::Stream StreamOf(DeviceStream stream) const {
    return stream == nullptr ? stream_->get() : stream;
  }
  // Waits until all work is done.
  void Wait() const;

  std::byte* Allocate(int64_t bytes, MemoryUse use) const override;
  void Free(std::byte* at, int64_t bytes, MemoryUse use) const override;
  void CopyFromHost(std::byte* to, const void* from, int64_t bytes, DeviceStream) const override;
  void CopyToHost(void* to, const std::byte* from, int64_t bytes, DeviceStream) const override;
  void Copy(std::byte* to, const std::byte* from, int64_t bytes, DeviceStream) const override;

 private:
  CudaDevice(std::shared_ptr<const Driver> driver, int ordinal, abi::Device device, GpuInfo info);
  Status Start();

  std::shared_ptr<const Driver> driver_;
  abi::Device device_;
  GpuInfo info_;
  abi::Context context_ = nullptr;
  std::unique_ptr<Stream> stream_;
  // Weights are loaded by several threads.
  mutable std::mutex mutex_;
  mutable std::optional<Pool> pool_;
  mutable std::optional<Staging> staging_;
};

}  // namespace latte::cuda
