#include "tests/conformance/support/gpu.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "src/kernels/cuda/launch/kernel_set.h"

namespace latte {
namespace {

struct Gpu {
  std::unique_ptr<cuda::CudaDevice> device;
  std::unique_ptr<const cuda::KernelSet> kernels;
  Machine machine;
};

// A driver that is named has to work.
Gpu OpenGpu() {
  Gpu out;
  out.device = std::move(cuda::CudaDevice::Open(0)).value();
  out.kernels = std::move(cuda::KernelSet::Load(*out.device)).value();
  out.machine = Machine::OfGpu(*out.kernels).value();
  return out;
}

const Gpu& TheGpu() {
  static const Gpu gpu = OpenGpu();
  return gpu;
}

}  // namespace

const Machine* TestGpu() {
  return std::getenv("LATTE_CUDA_DRIVER") == nullptr ? nullptr : &TheGpu().machine;
}

bool GpuIsEmulated() {
  return TestGpu() != nullptr && TheGpu().device->info().name == "emulated GPU";
}

PlacedSequences::PlacedSequences(std::span<const SequenceChunk> given)
    : sequences(given.begin(), given.end()) {
  for (const SequenceChunk& s : given) {
    placed.push_back({.query_start = static_cast<int32_t>(s.query_start),
                      .count = static_cast<int32_t>(s.count),
                      .cached_len = static_cast<int32_t>(s.cached_len),
                      .path = static_cast<int32_t>(s.path),
                      .first_page = static_cast<int32_t>(pages.size()),
                      .page_count = static_cast<int32_t>(s.pages.size())});
    pages.insert(pages.end(), s.pages.begin(), s.pages.end());
  }
  for (size_t i = 0; i < sequences.size(); ++i) {
    sequences[i].placed = &placed[i];
    sequences[i].pages = std::span(pages).subspan(static_cast<size_t>(placed[i].first_page),
                                                  static_cast<size_t>(placed[i].page_count));
  }
}

GpuOperands::~GpuOperands() {
  for (const Stretch& s : stretches_)
    if (s.gpu != 0) TheGpu().device->driver().cuMemFree_v2(s.gpu);
}

void GpuOperands::Add(const void* at, int64_t bytes) {
  if (bytes > 0) stretches_.push_back({static_cast<const std::byte*>(at), bytes, 0});
}

void GpuOperands::CopyIn() {
  std::ranges::sort(stretches_, {}, &Stretch::host);
  std::vector<Stretch> joined;
  for (const Stretch& s : stretches_) {
    const bool follows = !joined.empty() && s.host <= joined.back().host + joined.back().bytes;
    if (!follows) {
      joined.push_back(s);
      continue;
    }
    const int64_t end = s.host + s.bytes - joined.back().host;
    joined.back().bytes = std::max(joined.back().bytes, end);
  }
  stretches_ = std::move(joined);
  for (Stretch& s : stretches_) {
    // The driver's own memory: in a piece of a pool, a kernel may pass the end unseen.
    const cuda::Driver& driver = TheGpu().device->driver();
    driver.Check(driver.cuMemAlloc_v2(&s.gpu, static_cast<size_t>(s.bytes)), "memory was taken");
    TheGpu().device->CopyFromHost(OnGpu(s), s.host, s.bytes, nullptr);
  }
}

std::byte* GpuOperands::On(const void* at) const {
  const auto* const host = static_cast<const std::byte*>(at);
  const auto after = std::ranges::upper_bound(stretches_, host, {}, &Stretch::host);
  if (after == stretches_.begin()) return const_cast<std::byte*>(host);
  const Stretch& own = *std::prev(after);
  const int64_t offset = host - own.host;
  return offset < own.bytes ? OnGpu(own) + offset : const_cast<std::byte*>(host);
}

void GpuOperands::CopyOut() const {
  for (const Stretch& s : stretches_)
    TheGpu().device->CopyToHost(const_cast<std::byte*>(s.host), OnGpu(s), s.bytes, nullptr);
}

}  // namespace latte
