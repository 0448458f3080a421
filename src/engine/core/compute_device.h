// The device of an engine: the CPUs of this machine, or one of its GPUs.
#pragma once

#include <memory>
#include <string>

#include "latte/status.h"

#include "src/checkpoint/checkpoint.h"
#include "src/engine/settings.h"
#include "src/kernels/machine.h"
#include "src/tensor/device.h"

namespace latte {

namespace cuda {
class CudaDevice;
class KernelSet;
}  // namespace cuda

// Immutable after Open; copies share the device. One that was not opened computes nothing.
class ComputeDevice {
 public:
  ComputeDevice() = default;

  // `name`: as EngineOptions::device. Errors: kInvalidArgument for a GPU that is not there;
  // kUnavailable without a driver, a GPU or kernels for it; of Machine::Detect.
  [[nodiscard]] static Result<ComputeDevice> Open(const std::string& name);

  const Machine& host() const { return host_; }        // this processor
  const Machine& machine() const { return machine_; }  // what computes the model
  const Device& device() const;                        // where weights and cache lie
  bool is_gpu() const { return gpu_ != nullptr; }
  // The room for an engine where it computes, before its weights are loaded; `mapped`: the weights,
  // or none. Throws DeviceError.
  MemoryRoom RoomFor(const ModelConfig& config, const Checkpoint* mapped,
                     const EngineOptions& options) const;
  // Bytes of a GPU's memory, for all programs. Require: is_gpu(). FreeGpuBytes throws DeviceError.
  int64_t FreeGpuBytes() const;
  int64_t TotalGpuBytes() const;

 private:
  Machine host_, machine_;
  std::shared_ptr<const cuda::CudaDevice> gpu_;
  std::shared_ptr<const cuda::KernelSet> kernels_;
};

// The kernels for GPUs in this build and the GPUs of this machine, on one line for users.
std::string GpuSummary();

// kExhausted if the weights are larger than the GPU's memory that is free; nothing for the host,
// where they are then read from disk.
[[nodiscard]] Status CheckWeightsFit(const ModelConfig& config, const MemoryRoom& room);

// Whether a name of --device is that of a GPU.
inline bool NamesGpu(std::string_view device) { return device.starts_with("cuda"); }

}  // namespace latte
