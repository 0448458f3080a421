#include "src/engine/core/compute_device.h"

#include <charconv>

#include <fmt/format.h>

#include "src/base/limits/memory.h"
#include "src/checkpoint/weight_memory.h"
#include "src/engine/step/step_settings.h"
#include "src/kernels/cuda/images/image.h"
#include "src/kernels/cuda/launch/kernel_set.h"
#include "src/tensor/cuda/cuda_device.h"

namespace latte {
namespace {

// Of "cuda" or "cuda:N".
int OrdinalOf(const std::string& name) {
  const size_t colon = name.find(':');
  int ordinal = 0;
  if (colon != std::string::npos)
    std::from_chars(name.data() + colon + 1, name.data() + name.size(), ordinal);
  return ordinal;
}

}  // namespace

Result<ComputeDevice> ComputeDevice::Open(const std::string& name) {
  ComputeDevice out;
  if (name != "cpu" && !NamesGpu(name))
    return InvalidArgument(fmt::format("--device: expected cpu, cuda or cuda:N, found '{}'", name));
  LATTE_ASSIGN_OR_RETURN(out.host_, Machine::Detect());
  out.machine_ = out.host_;
  if (name == "cpu") return out;
  LATTE_ASSIGN_OR_RETURN(out.gpu_, cuda::CudaDevice::Open(OrdinalOf(name)));
  LATTE_ASSIGN_OR_RETURN(out.kernels_, cuda::KernelSet::Load(*out.gpu_));
  LATTE_ASSIGN_OR_RETURN(out.machine_, Machine::OfGpu(*out.kernels_));
  return out;
}

const Device& ComputeDevice::device() const {
  if (gpu_ == nullptr) return HostDevice();
  return *gpu_;
}

MemoryRoom ComputeDevice::RoomFor(const ModelConfig& config, const Checkpoint* mapped,
                                  const EngineOptions& options) const {
  MemoryRoom out;
  if (gpu_ != nullptr) {
    out.available_bytes = gpu_->FreeBytes();
    out.gpu = gpu_->Label();
    out.step_bytes = DeviceStepBytes(config, options);
    if (mapped != nullptr)
      out.weight_bytes = WeightMemoryOnDevice(config, *mapped, NeedsMtp(options, config));
  } else if (mapped != nullptr) {
    out.available_bytes = MemoryForWeights(config, *mapped);
    out.weight_bytes = WeightMemory(*mapped);
  } else {
    out.available_bytes = AvailableMemory();
  }
  return out;
}

int64_t ComputeDevice::FreeGpuBytes() const { return gpu_->FreeBytes(); }
int64_t ComputeDevice::TotalGpuBytes() const { return gpu_->info().memory_bytes; }

Status CheckWeightsFit(const ModelConfig& config, const MemoryRoom& room) {
  if (room.gpu.empty() || room.weight_bytes <= room.available_bytes.value_or(0)) return {};
  return Exhausted(fmt::format(
      "GPU memory: expected {} bytes for the weights, found {} free on {}; use {}, another GPU "
      "(--device cuda:N) or --device cpu, or end other programs that use the GPU",
      room.weight_bytes, room.available_bytes.value_or(0), room.gpu, SmallerModel(config)));
}

std::string GpuSummary() {
  const std::string kernels =
      cuda::KernelImage().size() > 1 ? "in this build" : "not in this build (make cuda)";
  const auto driver = cuda::Driver::Load();
  if (!driver) return fmt::format("kernels {}; no GPU: no usable driver", kernels);
  const auto gpus = cuda::ListGpus(**driver);
  if (!gpus || gpus->empty()) return fmt::format("kernels {}; no GPU", kernels);
  std::string out = fmt::format("kernels {}", kernels);
  for (size_t i = 0; i < gpus->size(); ++i)
    out += fmt::format("; cuda:{} {} ({}.{})", i, (*gpus)[i].name,
                       (*gpus)[i].compute_capability / 10, (*gpus)[i].compute_capability % 10);
  return out;
}

}  // namespace latte
