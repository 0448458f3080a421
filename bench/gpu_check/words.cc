// Runs the probes on a GPU and prints the bits that they write: one line for each probe and lane.
// Needs only a driver.
//
//   words [--times] IMAGE     IMAGE: probes.cu compiled to a fat binary
//   LATTE_CUDA_DRIVER         the driver's library; libcuda_emulated.so: the emulator
//
// --times writes lines of JSON instead: the rate of copies and the cost of a launch.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "bench/gpu_check/probes.h"
#include "src/tensor/cuda/driver_abi.h"

namespace latte::cuda {
namespace {

struct Functions {
#define LATTE_CUDA_MEMBER(name, arguments) abi::Code(*name) arguments = nullptr;
  LATTE_CUDA_DRIVER(LATTE_CUDA_MEMBER)
#undef LATTE_CUDA_MEMBER
};

void Check(abi::Code code, const char* what) {
  if (code == abi::kSuccess) return;
  std::fprintf(stderr, "words: %s: error %d\n", what, code);
  std::exit(1);
}

Functions Load() {
  const char* const named = std::getenv("LATTE_CUDA_DRIVER");
  void* const library = dlopen(named == nullptr ? "libcuda.so.1" : named, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "words: %s\n", dlerror());
    std::exit(1);
  }
  Functions out;
#define LATTE_CUDA_FIND(name, arguments)                                  \
  out.name = reinterpret_cast<decltype(out.name)>(dlsym(library, #name)); \
  if (out.name == nullptr) std::fprintf(stderr, "words: no %s\n", #name), std::exit(1);
  LATTE_CUDA_DRIVER(LATTE_CUDA_FIND)
#undef LATTE_CUDA_FIND
  return out;
}

struct Gpu {
  Functions f = Load();
  abi::Stream stream = nullptr;
  abi::Module module = nullptr;

  explicit Gpu(const std::string& image) {
    abi::Device device = 0;
    abi::Context context = nullptr;
    Check(f.cuInit(0), "cuInit");
    Check(f.cuDeviceGet(&device, 0), "cuDeviceGet");
    Check(f.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    Check(f.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    Check(f.cuStreamCreate(&stream, abi::kStreamNonBlocking), "cuStreamCreate");
    Check(f.cuModuleLoadData(&module, image.c_str()), "cuModuleLoadData");
  }

  abi::Ptr Take(size_t bytes) const {
    abi::Ptr out = 0;
    Check(f.cuMemAlloc_v2(&out, bytes), "cuMemAlloc");
    Check(f.cuMemsetD8Async(out, 0, bytes, stream), "cuMemsetD8Async");
    return out;
  }
  void Launch(abi::Function function, void* params) const {
    void* arguments[] = {params};
    Check(f.cuLaunchKernel(function, 1, 1, 1, kProbeLanes, 1, 1, 4096, stream, arguments, nullptr),
          "cuLaunchKernel");
  }
  void Wait() const { Check(f.cuStreamSynchronize(stream), "cuStreamSynchronize"); }
};

// Numbers of many sizes and both signs; no zero.
std::vector<float> Inputs() {
  std::vector<float> out;
  for (int i = 0; i < kProbeLanes; ++i) {
    const float size = std::ldexp(1.0f + static_cast<float>(i * 37 % 64) / 64.0f, i % 9 - 4);
    out.push_back(i % 3 == 0 ? -size : size);
  }
  return out;
}

void WriteBits(const Gpu& gpu) {
  const std::vector<float> in = Inputs();
  const size_t in_bytes = in.size() * sizeof(float);
  std::vector<uint32_t> out(kProbeLanes * kProbeWords);
  const size_t out_bytes = out.size() * sizeof(uint32_t);
  const abi::Ptr at = gpu.Take(in_bytes);
  Check(gpu.f.cuMemcpyHtoDAsync_v2(at, in.data(), in_bytes, gpu.stream), "copy to the GPU");
#define LATTE_CUDA_NAME(kernel, params, threads) "latte_" #kernel,
  for (const char* name : {LATTE_CUDA_PROBES(LATTE_CUDA_NAME)}) {
#undef LATTE_CUDA_NAME
    abi::Function function = nullptr;
    Check(gpu.f.cuModuleGetFunction(&function, gpu.module, name), name);
    const abi::Ptr to = gpu.Take(out_bytes);
    ProbeParams params = {reinterpret_cast<const float*>(at), reinterpret_cast<uint32_t*>(to)};
    gpu.Launch(function, &params);
    Check(gpu.f.cuMemcpyDtoHAsync_v2(out.data(), to, out_bytes, gpu.stream), "copy to the host");
    gpu.Wait();
    for (int lane = 0; lane < kProbeLanes; ++lane) {
      std::printf("%s %d", name + std::strlen("latte_"), lane);
      for (int word = 0; word < kProbeWords; ++word)
        std::printf(" %08x", out[static_cast<size_t>(lane * kProbeWords + word)]);
      std::printf("\n");
    }
  }
}

template <class F>
double SecondsOf(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void WriteTimes(const Gpu& gpu) {
  constexpr size_t kBytes = size_t{256} << 20;
  constexpr int kLaunches = 2000;
  void* pinned = nullptr;
  Check(gpu.f.cuMemHostAlloc(&pinned, kBytes, 0), "cuMemHostAlloc");
  const abi::Ptr a = gpu.Take(kBytes), b = gpu.Take(kBytes);
  gpu.Wait();
  const double to_gpu = SecondsOf([&] {
    Check(gpu.f.cuMemcpyHtoDAsync_v2(a, pinned, kBytes, gpu.stream), "copy to the GPU");
    gpu.Wait();
  });
  const double within = SecondsOf([&] {
    for (int i = 0; i < 10; ++i)
      Check(gpu.f.cuMemcpyDtoDAsync_v2(b, a, kBytes, gpu.stream), "copy within the GPU");
    gpu.Wait();
  });
  std::printf("{\"part\": \"copy\", \"case\": \"pinned to GPU\", \"gb_s\": %.2f}\n",
              static_cast<double>(kBytes) / to_gpu / 1e9);
  std::printf("{\"part\": \"copy\", \"case\": \"within GPU, read and written\", \"gb_s\": %.1f}\n",
              20.0 * static_cast<double>(kBytes) / within / 1e9);
  abi::Function function = nullptr;
  Check(gpu.f.cuModuleGetFunction(&function, gpu.module, "latte_ProbeShuffles"), "function");
  ProbeParams params = {reinterpret_cast<const float*>(a), reinterpret_cast<uint32_t*>(b)};
  gpu.Launch(function, &params);
  gpu.Wait();
  const double launches = SecondsOf([&] {
    for (int i = 0; i < kLaunches; ++i) gpu.Launch(function, &params);
    gpu.Wait();
  });
  std::printf("{\"part\": \"launch\", \"case\": \"one after the other\", \"us\": %.3f}\n",
              launches / kLaunches * 1e6);
}

}  // namespace
}  // namespace latte::cuda

int main(int argc, char** argv) {
  const bool times = argc == 3 && std::strcmp(argv[1], "--times") == 0;
  if (argc != 2 && !times) {
    std::fprintf(stderr, "usage: words [--times] IMAGE\n");
    return 2;
  }
  std::ifstream file(argv[argc - 1], std::ios::binary);
  const std::string image(std::istreambuf_iterator<char>(file), {});
  const latte::cuda::Gpu gpu(image);
  times ? latte::cuda::WriteTimes(gpu) : latte::cuda::WriteBits(gpu);
  return 0;
}
