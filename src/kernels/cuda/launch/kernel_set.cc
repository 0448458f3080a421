#include "src/kernels/cuda/launch/kernel_set.h"

#include <cstdlib>

#include <fmt/format.h>

#include "src/base/check.h"
#include "src/base/limits/device_error.h"
#include "src/kernels/cuda/images/image.h"

namespace latte::cuda {
namespace {

std::string NoKernels(const CudaDevice& device, const std::string& why) {
  if (KernelImage().size() == 1)
    return fmt::format(
        "this build of latte has no CUDA kernels: configure it with -DLATTE_CUDA_KERNELS=ON, which "
        "needs nvcc 13.0 (docs/cuda.md), or run without --device cuda");
  return fmt::format(
      "the CUDA kernels of this build do not run on GPU {} ({}, compute capability "
      "{}.{}): {}",
      device.ordinal(), device.info().name, device.info().compute_capability / 10,
      device.info().compute_capability % 10, why);
}

}  // namespace

Status KernelSet::FindKernels() {
  const Driver& driver = device_.driver();
  device_.MakeCurrent();
  abi::Code code = driver.cuModuleLoadData(&module_, KernelImage().data());
  for (size_t i = 0; i < kKernelCount && code == abi::kSuccess; ++i) {
    code = driver.cuModuleGetFunction(&functions_[i], module_,
                                      fmt::format("latte_{}", kKernelEntries[i].name).c_str());
    if (code != abi::kSuccess) break;
    code = driver.cuFuncSetAttribute(functions_[i], abi::kMaxDynamicSharedSizeBytes,
                                     static_cast<int>(device_.info().shared_bytes));
  }
  if (code == abi::kSuccess) return {};
  return Fail(Code::kUnavailable, NoKernels(device_, driver.TextOf(code)));
}

Result<std::unique_ptr<const KernelSet>> KernelSet::Load(const CudaDevice& device) {
  std::unique_ptr<KernelSet> out(new KernelSet(device));
  const char* const blocking = std::getenv("LATTE_CUDA_BLOCKING");
  out->waits_ = blocking != nullptr && std::string_view(blocking) == "1";
  LATTE_RETURN_IF_ERROR(out->FindKernels());
  return std::unique_ptr<const KernelSet>(std::move(out));
}

KernelSet::~KernelSet() {
  if (module_ == nullptr) return;
  device_.driver().cuCtxSetCurrent(device_.context());  // this thread may have none
  device_.driver().cuModuleUnload(module_);
}

void KernelSet::LaunchAny(KernelId id, const Grid& grid, int64_t shared_bytes, const void* params,
                          DeviceStream stream) const {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  LATTE_CHECK(grid.x <= kMostBlocksX && grid.y <= kMostBlocksYz && grid.z <= kMostBlocksYz);
  const auto index = static_cast<size_t>(id);
  const KernelEntry& entry = kKernelEntries[index];
  void* arguments[] = {const_cast<void*>(params)};
  device_.MakeCurrent();
  const Driver& driver = device_.driver();
  const abi::Code code = driver.cuLaunchKernel(
      functions_[index], static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
      static_cast<unsigned>(grid.z), static_cast<unsigned>(entry.threads), 1, 1,
      static_cast<unsigned>(shared_bytes), device_.StreamOf(stream), arguments, nullptr);
  if (code != abi::kSuccess)
    throw DeviceError(
        fmt::format("the GPU did not start kernel {}: {}", entry.name, driver.TextOf(code)));
  if (!waits_) return;
  driver.Check(driver.cuStreamSynchronize(device_.StreamOf(stream)),
               fmt::format("kernel {} ran", entry.name));
}

}  // namespace latte::cuda
