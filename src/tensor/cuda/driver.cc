#include "src/tensor/cuda/driver.h"

#include <cstdlib>

#include <dlfcn.h>
#include <fmt/format.h>

#include "src/base/limits/device_error.h"

namespace latte::cuda {
namespace {

constexpr const char* kUsualFile = "libcuda.so.1";
constexpr const char* kVariable = "LATTE_CUDA_DRIVER";
constexpr std::string_view kWithoutGpu =
    "install the NVIDIA driver, version 580 or later, or run without --device cuda";

std::string VersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

Status Driver::FindFunctions(void* library) {
#define LATTE_CUDA_FIND(name, arguments)                          \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  if (name == nullptr)                                            \
    return Fail(Code::kUnavailable,                               \
                fmt::format("{} has no function {}: {}", file_, #name, kWithoutGpu));
  LATTE_CUDA_DRIVER(LATTE_CUDA_FIND)
#undef LATTE_CUDA_FIND
  return {};
}

Result<std::shared_ptr<const Driver>> Driver::Load() {
  const char* const named = std::getenv(kVariable);
  auto out = std::make_shared<Driver>();
  out->file_ = named == nullptr || *named == '\0' ? kUsualFile : named;
  void* const library = dlopen(out->file_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Fail(Code::kUnavailable,
                fmt::format("no NVIDIA driver: {}; {}", dlerror(), kWithoutGpu));
  // The version first: an old driver lacks functions too.
  using Version = decltype(out->cuDriverGetVersion);
  const auto version = reinterpret_cast<Version>(dlsym(library, "cuDriverGetVersion"));
  if (version == nullptr || version(&out->version_) != abi::kSuccess)
    return Fail(Code::kUnavailable,
                fmt::format("{} is no CUDA driver: {}", out->file_, kWithoutGpu));
  if (out->version_ < kOldestDriver)
    return Fail(
        Code::kUnavailable,
        fmt::format("the NVIDIA driver is too old: expected one for CUDA {} or later, found "
                    "one for CUDA {}: {}; {}",
                    VersionText(kOldestDriver), VersionText(out->version_), out->file_,
                    kWithoutGpu));
  LATTE_RETURN_IF_ERROR(out->FindFunctions(library));
  if (const abi::Code code = out->cuInit(0); code != abi::kSuccess)
    return Fail(Code::kUnavailable, fmt::format("the NVIDIA driver does not start: {}; {}",
                                                out->TextOf(code), kWithoutGpu));
  return out;
}

std::string Driver::TextOf(abi::Code code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName(code, &name) != abi::kSuccess || name == nullptr)
    return fmt::format("error {}", code);
  if (cuGetErrorString(code, &text) != abi::kSuccess || text == nullptr) return name;
  return fmt::format("{} ({})", text, name);
}

void Driver::Check(abi::Code code, std::string_view doing) const {
  if (code == abi::kSuccess) return;
  throw DeviceError(fmt::format("the GPU failed while {}: {}", doing, TextOf(code)));
}

}  // namespace latte::cuda
