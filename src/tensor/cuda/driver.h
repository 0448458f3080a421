// The CUDA driver, opened at run time, so that one binary starts on every machine.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "latte/status.h"

#include "src/tensor/cuda/driver_abi.h"

namespace latte::cuda {

// The oldest driver that loads our kernels: that of CUDA 13.0, version 580.
inline constexpr int kOldestDriver = 13000;

// Immutable after Load; thread-safe. The library is never unloaded, because a driver cannot be
// started twice.
class Driver {
 public:
  // Opens the library of LATTE_CUDA_DRIVER, or else libcuda.so.1, and starts it. Errors:
  // kUnavailable without a driver, with one that is too old, or with one that does not start.
  [[nodiscard]] static Result<std::shared_ptr<const Driver>> Load();

  const std::string& file() const { return file_; }
  int version() const { return version_; }  // 13000: CUDA 13.0

  // "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  std::string TextOf(abi::Code code) const;
  // Throws DeviceError if `code` is an error; `doing` completes "the GPU failed while".
  void Check(abi::Code code, std::string_view doing) const;

#define LATTE_CUDA_MEMBER(name, arguments) abi::Code(*name) arguments = nullptr;
  LATTE_CUDA_DRIVER(LATTE_CUDA_MEMBER)
#undef LATTE_CUDA_MEMBER

 private:
  Status FindFunctions(void* library);

  std::string file_;
  int version_ = 0;
};

}  // namespace latte::cuda
