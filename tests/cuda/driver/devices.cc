// The functions of libcuda_emulated.so about devices, memory and modules.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/cuda/driver/calls.h"

namespace latte::emulator {
namespace {

// Limits of an H200.
constexpr int kSharedBytes = 227 << 10, kMultiprocessors = 132, kMajor = 9, kMinor = 0;
constexpr size_t kHostPage = 4096;

thread_local abi::Context current_context = nullptr;

std::string& FirstReport() {
  static std::string text;
  return text;
}

}  // namespace

std::mutex& DriverMutex() {
  static std::mutex mutex;
  return mutex;
}

// Never destroyed, because objects of the program may end after the objects of this library.
DriverState& Driver() {
  static auto* const driver = new DriverState;
  return *driver;
}

bool HasContext() { return current_context != nullptr; }

StreamState* StreamOf(abi::Stream stream) {
  if (!HasContext()) return nullptr;
  for (const auto& each : Driver().streams)
    if (each.get() == stream) return each.get();
  Driver().Report(stream == nullptr ? "work for the default stream" : "work for no stream");
  return nullptr;
}

}  // namespace latte::emulator

using namespace latte::emulator;  // NOLINT: the functions below have C's names

extern "C" {

const char* latte_emulated_counts(Counts* counts) {
  const Call call;
  *counts = Driver().counts;
  counts->bytes_in_use = static_cast<int64_t>(Driver().memory.in_use());
  for (const auto& [at, bytes] : Driver().pinned)
    counts->pinned_bytes += static_cast<int64_t>(bytes);
  FirstReport() = Driver().first_report;
  return FirstReport().c_str();
}

int64_t latte_emulated_transfers(int64_t begin, Transfer* out, int64_t most) {
  const Call call;
  const std::vector<Transfer>& all = Driver().transfers;
  for (int64_t i = begin; i < std::ssize(all) && i - begin < most; ++i)
    out[i - begin] = all[static_cast<size_t>(i)];
  return std::ssize(all);
}

void latte_emulated_memory(int64_t bytes, int64_t taken_later) {
  const Call call;
  Driver().memory.SetLimit(static_cast<size_t>(bytes), static_cast<size_t>(taken_later));
}

abi::Code cuInit(unsigned) { return abi::kSuccess; }

abi::Code cuDriverGetVersion(int* version) {
  const Call call;
  *version = Driver().version;
  return abi::kSuccess;
}

abi::Code cuGetErrorName(abi::Code code, const char** name) {
  const auto text = [&]() -> const char* {
    switch (code) {
      case abi::kInvalidValue:
        return "CUDA_ERROR_INVALID_VALUE";
      case abi::kOutOfMemory:
        return "CUDA_ERROR_OUT_OF_MEMORY";
      case abi::kInvalidContext:
        return "CUDA_ERROR_INVALID_CONTEXT";
      case abi::kInvalidHandle:
        return "CUDA_ERROR_INVALID_HANDLE";
      case abi::kIllegalAddress:
        return "CUDA_ERROR_ILLEGAL_ADDRESS";
      case abi::kLaunchFailed:
        return "CUDA_ERROR_LAUNCH_FAILED";
      case abi::kStreamCaptureUnsupported:
        return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
      case abi::kStreamCaptureInvalidated:
        return "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
      default:
        return "CUDA_ERROR";
    }
  };
  *name = text();
  return abi::kSuccess;
}

abi::Code cuGetErrorString(abi::Code code, const char** text) {
  *text = code == abi::kLaunchFailed ? "unspecified launch failure" : "the emulated driver refuses";
  return abi::kSuccess;
}

abi::Code cuDeviceGetCount(int* count) {
  const char* const none = std::getenv("LATTE_EMULATOR_GPUS");
  *count = none == nullptr ? 1 : std::atoi(none);
  return abi::kSuccess;
}

abi::Code cuDeviceGet(abi::Device* device, int ordinal) {
  *device = ordinal;
  return abi::kSuccess;
}

abi::Code cuDeviceGetName(char* name, int bytes, abi::Device) {
  std::strncpy(name, "emulated GPU", static_cast<size_t>(bytes));
  return abi::kSuccess;
}

abi::Code cuDeviceGetAttribute(int* value, int attribute, abi::Device) {
  switch (attribute) {
    case abi::kMaxSharedMemoryPerBlockOptin:
      *value = kSharedBytes;
      return abi::kSuccess;
    case abi::kMultiprocessorCount:
      *value = kMultiprocessors;
      return abi::kSuccess;
    case abi::kComputeCapabilityMajor:
      *value = kMajor;
      return abi::kSuccess;
    case abi::kComputeCapabilityMinor:
      *value = kMinor;
      return abi::kSuccess;
    default:
      return abi::kInvalidValue;
  }
}

abi::Code cuDeviceTotalMem_v2(size_t* bytes, abi::Device) {
  const Call call;
  *bytes = Driver().memory.limit();
  return abi::kSuccess;
}

abi::Code cuDevicePrimaryCtxRetain(abi::Context* context, abi::Device) {
  static int one;
  *context = &one;
  return abi::kSuccess;
}

abi::Code cuDevicePrimaryCtxRelease_v2(abi::Device) { return abi::kSuccess; }

// Each thread has its own.
abi::Code cuCtxSetCurrent(abi::Context context) {
  current_context = context;
  return abi::kSuccess;
}

abi::Code cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Call call;
  if (!HasContext()) return abi::kInvalidContext;
  *total = Driver().memory.limit();
  *free = Driver().memory.left();
  Driver().memory.LetOthersTake();
  return abi::kSuccess;
}

abi::Code cuMemAlloc_v2(abi::Ptr* at, size_t bytes) {
  const Call call;
  if (!HasContext()) return abi::kInvalidContext;
  if (Driver().AnyCapture()) return Driver().RefuseInCapture();
  if (bytes == 0) return abi::kInvalidValue;
  ++Driver().counts.allocations;
  *at = Driver().memory.Take(bytes);
  return *at == 0 ? abi::kOutOfMemory : abi::kSuccess;
}

// Waits for all work, as the real one does.
abi::Code cuMemFree_v2(abi::Ptr at) {
  const Call call;
  if (!HasContext()) return abi::kInvalidContext;
  if (Driver().AnyCapture()) return Driver().RefuseInCapture();
  for (const auto& stream : Driver().streams) Driver().RunTo(*stream, stream->issued);
  return Driver().memory.Give(at) ? abi::kSuccess : abi::kInvalidValue;
}

abi::Code cuMemHostAlloc(void** at, size_t bytes, unsigned) {
  const Call call;
  if (!HasContext()) return abi::kInvalidContext;
  if (Driver().AnyCapture()) return Driver().RefuseInCapture();
  const size_t size = (bytes + kHostPage - 1) / kHostPage * kHostPage;
  *at = std::aligned_alloc(kHostPage, size);
  if (*at == nullptr) return abi::kOutOfMemory;
  std::memset(*at, 0xff, size);
  Driver().pinned[static_cast<std::byte*>(*at)] = bytes;
  return abi::kSuccess;
}

abi::Code cuMemFreeHost(void* at) {
  const Call call;
  if (!HasContext()) return abi::kInvalidContext;
  for (const auto& stream : Driver().streams) Driver().RunTo(*stream, stream->issued);
  if (Driver().pinned.erase(static_cast<std::byte*>(at)) == 0) return abi::kInvalidValue;
  std::free(at);
  return abi::kSuccess;
}

// The kernels are compiled into this library, whatever the image holds.
abi::Code cuModuleLoadData(abi::Module* module, const void*) {
  const Call call;
  if (!HasContext()) return abi::kInvalidContext;
  if (Driver().AnyCapture()) return Driver().RefuseInCapture();
  *module = &Driver();
  return abi::kSuccess;
}

abi::Code cuModuleUnload(abi::Module) {
  return HasContext() ? abi::kSuccess : abi::kInvalidContext;
}

abi::Code cuModuleGetFunction(abi::Function* function, abi::Module, const char* name) {
  const Call call;
  if (!HasContext()) return abi::kInvalidContext;
  for (FunctionState& each : Driver().functions)
    if (std::strcmp(each.name, name) == 0) {
      *function = &each;
      return abi::kSuccess;
    }
  return abi::kNotFound;
}

abi::Code cuFuncSetAttribute(abi::Function function, int attribute, int value) {
  const Call call;
  if (attribute != abi::kMaxDynamicSharedSizeBytes || value > kSharedBytes)
    return abi::kInvalidValue;
  static_cast<FunctionState*>(function)->shared_limit = value;
  return abi::kSuccess;
}

}  // extern "C"
