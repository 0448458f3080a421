#include "src/tensor/cuda/cuda_device.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/base/limits/device_error.h"

namespace latte::cuda {
namespace {

abi::Ptr PtrOf(const std::byte* at) { return reinterpret_cast<abi::Ptr>(at); }

Result<GpuInfo> InfoOf(const Driver& driver, abi::Device device) {
  const auto fail = [&](abi::Code code) {
    return Fail(Code::kUnavailable,
                fmt::format("the GPU does not say what it is: {}", driver.TextOf(code)));
  };
  GpuInfo out;
  std::array<char, 256> name = {};
  size_t memory = 0;
  if (const abi::Code code = driver.cuDeviceGetName(name.data(), name.size() - 1, device);
      code != abi::kSuccess)
    return fail(code);
  if (const abi::Code code = driver.cuDeviceTotalMem_v2(&memory, device); code != abi::kSuccess)
    return fail(code);
  int major = 0, minor = 0, shared = 0;
  for (const auto& [number, attribute] :
       {std::pair(&major, abi::kComputeCapabilityMajor),
        std::pair(&minor, abi::kComputeCapabilityMinor),
        std::pair(&out.multiprocessors, abi::kMultiprocessorCount),
        std::pair(&shared, abi::kMaxSharedMemoryPerBlockOptin)})
    if (const abi::Code code = driver.cuDeviceGetAttribute(number, attribute, device);
        code != abi::kSuccess)
      return fail(code);
  out.name = name.data();
  out.compute_capability = 10 * major + minor;
  out.shared_bytes = shared;
  out.memory_bytes = static_cast<int64_t>(memory);
  return out;
}

Result<int> CountGpus(const Driver& driver) {
  int count = 0;
  const abi::Code code = driver.cuDeviceGetCount(&count);
  if (code == abi::kSuccess || code == abi::kNoDevice) return count;
  return Fail(Code::kUnavailable,
              fmt::format("the NVIDIA driver counts no GPUs: {}", driver.TextOf(code)));
}

Result<abi::Device> FindGpu(const Driver& driver, int ordinal) {
  LATTE_ASSIGN_OR_RETURN(const int count, CountGpus(driver));
  if (count == 0)
    return Fail(Code::kUnavailable,
                "no NVIDIA GPU: the driver finds none (CUDA_VISIBLE_DEVICES hides GPUs; nvidia-smi "
                "lists them); run without --device cuda");
  if (ordinal < 0 || ordinal >= count)
    return InvalidArgument(
        fmt::format("no GPU {}: expected a number from 0 to {}, because the "
                    "driver finds {}",
                    ordinal, count - 1, count == 1 ? "one GPU" : "these GPUs"));
  abi::Device device = 0;
  if (const abi::Code code = driver.cuDeviceGet(&device, ordinal); code != abi::kSuccess)
    return Fail(Code::kUnavailable, fmt::format("GPU {}: {}", ordinal, driver.TextOf(code)));
  return device;
}

}  // namespace

Result<std::vector<GpuInfo>> ListGpus(const Driver& driver) {
  LATTE_ASSIGN_OR_RETURN(const int count, CountGpus(driver));
  std::vector<GpuInfo> out;
  for (int i = 0; i < count; ++i) {
    LATTE_ASSIGN_OR_RETURN(const abi::Device device, FindGpu(driver, i));
    LATTE_ASSIGN_OR_RETURN(GpuInfo info, InfoOf(driver, device));
    out.push_back(std::move(info));
  }
  return out;
}

CudaDevice::CudaDevice(std::shared_ptr<const Driver> driver, int ordinal, abi::Device device,
                       GpuInfo info)
    : Device(DeviceKind::kCuda, ordinal),
      driver_(std::move(driver)),
      device_(device),
      info_(std::move(info)) {}

Status CudaDevice::Start() {
  const abi::Code code = driver_->cuDevicePrimaryCtxRetain(&context_, device_);
  if (code != abi::kSuccess)
    return Fail(Code::kUnavailable, fmt::format("GPU {} ({}) does not start: {}", ordinal(),
                                                info_.name, driver_->TextOf(code)));
  MakeCurrent();
  stream_ = std::make_unique<Stream>(*driver_);
  pool_.emplace(*driver_);
  staging_.emplace(*driver_);
  return {};
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::Open(int ordinal) {
  LATTE_ASSIGN_OR_RETURN(std::shared_ptr<const Driver> driver, Driver::Load());
  LATTE_ASSIGN_OR_RETURN(const abi::Device device, FindGpu(*driver, ordinal));
  LATTE_ASSIGN_OR_RETURN(GpuInfo info, InfoOf(*driver, device));
  std::unique_ptr<CudaDevice> out(
      new CudaDevice(std::move(driver), ordinal, device, std::move(info)));
  try {
    LATTE_RETURN_IF_ERROR(out->Start());
  } catch (const DeviceError& error) {
    return Fail(Code::kUnavailable, error.what());
  }
  return out;
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  driver_->cuCtxSetCurrent(context_);
  staging_.reset();
  pool_.reset();
  stream_.reset();
  driver_->cuDevicePrimaryCtxRelease_v2(device_);
}

void CudaDevice::MakeCurrent() const {
  driver_->Check(driver_->cuCtxSetCurrent(context_), "it was chosen");
}

std::string CudaDevice::Label() const { return fmt::format("cuda:{} '{}'", ordinal(), info_.name); }

int64_t CudaDevice::FreeBytes() const {
  MakeCurrent();
  size_t free = 0, total = 0;
  driver_->Check(driver_->cuMemGetInfo_v2(&free, &total), "its free memory was read");
  return static_cast<int64_t>(free);
}

void CudaDevice::Wait() const {
  MakeCurrent();
  driver_->Check(driver_->cuStreamSynchronize(stream_->get()), "the host waited for its work");
}

std::byte* CudaDevice::Allocate(int64_t bytes, MemoryUse use) const {
  MakeCurrent();
  const std::lock_guard lock(mutex_);
  const bool pooled = use == MemoryUse::kTensor;
  const abi::Ptr at = pooled ? pool_->Allocate(bytes) : pool_->AllocateAlone(bytes);
  if (at == 0) return nullptr;
  driver_->Check(driver_->cuMemsetD8Async(at, 0, static_cast<size_t>(bytes), stream_->get()),
                 "memory was set to zero");
  return reinterpret_cast<std::byte*>(at);
}

void CudaDevice::Free(std::byte* at, int64_t bytes, MemoryUse use) const {
  driver_->cuCtxSetCurrent(context_);
  const std::lock_guard lock(mutex_);
  if (use == MemoryUse::kTensor)
    pool_->Free(PtrOf(at), bytes);
  else
    pool_->FreeAlone(PtrOf(at));
}

void CudaDevice::CopyFromHost(std::byte* to, const void* from, int64_t bytes,
                              DeviceStream stream) const {
  MakeCurrent();
  const std::lock_guard lock(mutex_);
  staging_->CopyFromHost(PtrOf(to), from, bytes, StreamOf(stream));
}

void CudaDevice::CopyToHost(void* to, const std::byte* from, int64_t bytes,
                            DeviceStream stream) const {
  MakeCurrent();
  driver_->Check(
      driver_->cuMemcpyDtoHAsync_v2(to, PtrOf(from), static_cast<size_t>(bytes), StreamOf(stream)),
      "data was copied to the host");
  driver_->Check(driver_->cuStreamSynchronize(StreamOf(stream)), "data was copied to the host");
}

void CudaDevice::Copy(std::byte* to, const std::byte* from, int64_t bytes,
                      DeviceStream stream) const {
  MakeCurrent();
  driver_->Check(driver_->cuMemcpyDtoDAsync_v2(PtrOf(to), PtrOf(from), static_cast<size_t>(bytes),
                                               StreamOf(stream)),
                 "data was copied");
}

}  // namespace latte::cuda
