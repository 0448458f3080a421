// The device layer (src/tensor/cuda) over the emulated driver.
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/limits/device_error.h"
#include "src/kernels/cuda/launch/kernel_set.h"
#include "src/tensor/cuda/cuda_device.h"
#include "tests/cuda/support/emulated_counts.h"

namespace latte::cuda::device_test {
namespace {

using testing_support::EmulatedCounts;

class CudaDeviceTest : public ::testing::Test {
 protected:
  CudaDeviceTest() : device_(std::move(CudaDevice::Open(0)).value()) {}
  ~CudaDeviceTest() override { EmulatedCounts(); }

  std::byte* Take(int64_t bytes) const {
    std::byte* const at = device_->Allocate(bytes, MemoryUse::kTensor);
    EXPECT_NE(at, nullptr);
    return at;
  }
  std::vector<uint8_t> ToHost(const std::byte* at, int64_t bytes) const {
    std::vector<uint8_t> out(static_cast<size_t>(bytes));
    device_->CopyToHost(out.data(), at, bytes, nullptr);
    return out;
  }

  std::unique_ptr<CudaDevice> device_;
};

std::vector<uint8_t> Numbers(int64_t count, uint8_t first = 0) {
  std::vector<uint8_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

TEST_F(CudaDeviceTest, SaysWhatTheGpuIs) {
  EXPECT_EQ(device_->info().name, "emulated GPU");
  EXPECT_EQ(device_->info().compute_capability, 90);
  EXPECT_EQ(device_->info().multiprocessors, 132);
  EXPECT_EQ(device_->info().shared_bytes, 227 << 10);
  EXPECT_GT(device_->FreeBytes(), 0);
}

TEST_F(CudaDeviceTest, MemoryReadsAsZeroAlsoWhenItIsUsedAgain) {
  for (const int64_t bytes : {1, 300, 70000, 3 << 20}) {
    std::byte* const first = Take(bytes);
    EXPECT_EQ(ToHost(first, bytes), std::vector<uint8_t>(static_cast<size_t>(bytes)));
    const std::vector<uint8_t> numbers = Numbers(bytes, 7);
    device_->CopyFromHost(first, numbers.data(), bytes, nullptr);
    device_->Free(first, bytes, MemoryUse::kTensor);
    std::byte* const second = Take(bytes);
    EXPECT_EQ(ToHost(second, bytes), std::vector<uint8_t>(static_cast<size_t>(bytes)));
    device_->Free(second, bytes, MemoryUse::kTensor);
  }
}

// Small pieces come from slabs and large ones from the driver; all are aligned, and none overlaps
// another.
TEST_F(CudaDeviceTest, PiecesAreApartAndAligned) {
  std::vector<std::pair<std::byte*, int64_t>> pieces;
  const int64_t before = EmulatedCounts().allocations;
  for (int64_t i = 0; i < 200; ++i) pieces.emplace_back(Take(1 + i * 37), 1 + i * 37);
  EXPECT_EQ(EmulatedCounts().allocations - before, 1);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto& [at, bytes] = pieces[i];
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % Pool::kAlignment, 0u);
    const std::vector<uint8_t> own(static_cast<size_t>(bytes), static_cast<uint8_t>(i));
    device_->CopyFromHost(at, own.data(), bytes, nullptr);
  }
  for (size_t i = 0; i < pieces.size(); ++i)
    EXPECT_EQ(ToHost(pieces[i].first, pieces[i].second),
              std::vector<uint8_t>(static_cast<size_t>(pieces[i].second), static_cast<uint8_t>(i)));
  for (const auto& [at, bytes] : pieces) device_->Free(at, bytes, MemoryUse::kTensor);
}

TEST_F(CudaDeviceTest, TheSourceOfACopyMayChangeAfterTheCall) {
  constexpr int64_t kBytes = 1000;
  std::byte* const at = Take(3 * kBytes);
  std::vector<uint8_t> source(kBytes);
  const int64_t waits = EmulatedCounts().waits;
  for (int i = 0; i < 3; ++i) {
    std::memset(source.data(), 10 + i, kBytes);
    device_->CopyFromHost(at + i * kBytes, source.data(), kBytes, nullptr);
  }
  std::memset(source.data(), 99, kBytes);
  EXPECT_EQ(EmulatedCounts().waits, waits);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(ToHost(at + i * kBytes, kBytes),
              std::vector<uint8_t>(kBytes, static_cast<uint8_t>(10 + i)));
  device_->Free(at, 3 * kBytes, MemoryUse::kTensor);
}

// More than the ring of pinned blocks, in one call and in many.
TEST_F(CudaDeviceTest, CopiesMoreThanTheRingHolds) {
  constexpr int64_t kBytes = (40 << 20) + 13;
  std::byte* const at = Take(kBytes);
  const std::vector<uint8_t> numbers = Numbers(kBytes, 3);
  device_->CopyFromHost(at, numbers.data(), kBytes, nullptr);
  EXPECT_EQ(ToHost(at, kBytes), numbers);
  std::vector<uint8_t> part(1 << 20);
  for (int64_t i = 0; i < 40; ++i) {
    std::memset(part.data(), static_cast<int>(i), part.size());
    device_->CopyFromHost(at + (i << 20), part.data(), std::ssize(part), nullptr);
  }
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(ToHost(at + (i << 20), 1).front(), i);
  device_->Free(at, kBytes, MemoryUse::kTensor);
}

TEST_F(CudaDeviceTest, CopiesWithinTheDeviceInOrder) {
  constexpr int64_t kBytes = 500;
  std::byte* const a = Take(kBytes);
  std::byte* const b = Take(kBytes);
  const std::vector<uint8_t> first = Numbers(kBytes, 1), second = Numbers(kBytes, 2);
  device_->CopyFromHost(a, first.data(), kBytes, nullptr);
  device_->Copy(b, a, kBytes, nullptr);
  device_->CopyFromHost(a, second.data(), kBytes, nullptr);
  EXPECT_EQ(ToHost(b, kBytes), first);
  EXPECT_EQ(ToHost(a, kBytes), second);
  device_->Free(a, kBytes, MemoryUse::kTensor);
  device_->Free(b, kBytes, MemoryUse::kTensor);
}

TEST_F(CudaDeviceTest, TooLittleMemoryIsNoError) {
  EXPECT_EQ(device_->Allocate(int64_t{1} << 50, MemoryUse::kCache), nullptr);
  EXPECT_FALSE(DeviceMemory::Allocate(*device_, int64_t{1} << 50, MemoryUse::kCache));
}

TEST_F(CudaDeviceTest, RefusedCopiesThrow) {
  const std::vector<uint8_t> numbers = Numbers(16);
  const auto* const nowhere = reinterpret_cast<std::byte*>(64);
  EXPECT_THROW(device_->CopyFromHost(const_cast<std::byte*>(nowhere), numbers.data(), 16, nullptr),
               DeviceError);
}

TEST(OpenGpu, AGpuThatIsNotThereIsRefused) {
  const Result<std::unique_ptr<CudaDevice>> device = CudaDevice::Open(3);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, Code::kInvalidArgument);
  EXPECT_EQ(device.error().message,
            "no GPU 3: expected a number from 0 to 0, because the driver finds one GPU");
}

// A launch copies its params: they may change before it runs.
TEST_F(CudaDeviceTest, ParamsAreReadAtTheLaunch) {
  const auto kernels = std::move(KernelSet::Load(*device_)).value();
  constexpr int64_t kBytes = 4 * sizeof(float);
  std::byte* const x = Take(kBytes);
  std::byte* const y = Take(kBytes);
  const std::vector<float> numbers = {1, 2, 3, 4};
  device_->CopyFromHost(x, numbers.data(), kBytes, nullptr);
  AddParams params = {reinterpret_cast<float*>(x), reinterpret_cast<float*>(y), 4};
  kernels->Launch<KernelId::kAddRows>({1}, params, nullptr);
  params.count = 1;
  kernels->Launch<KernelId::kAddRows>({1}, params, nullptr);
  kernels->Launch<KernelId::kAddRows>({0}, params, nullptr);  // an empty grid
  std::vector<float> sums(4);
  device_->CopyToHost(sums.data(), y, kBytes, nullptr);
  EXPECT_EQ(sums, (std::vector<float>{2, 2, 3, 4}));
  device_->Free(x, kBytes, MemoryUse::kTensor);
  device_->Free(y, kBytes, MemoryUse::kTensor);
}

// Each thread chooses the GPU again, since a driver works for none that has not.
TEST_F(CudaDeviceTest, AnyThreadMayBeginWithAnything) {
  auto kernels = std::move(KernelSet::Load(*device_)).value();
  constexpr int64_t kBytes = 4 * sizeof(float);
  std::byte* const x = Take(kBytes);
  const AddParams params = {reinterpret_cast<float*>(x), reinterpret_cast<float*>(x), 4};
  const auto in_thread = [](const auto& call) { std::thread(call).join(); };
  in_thread([&] { kernels->Launch<KernelId::kAddRows>({1}, params, nullptr); });
  in_thread([&] { device_->Copy(x, x + 8, 8, nullptr); });
  in_thread([&] { device_->Wait(); });
  in_thread([&] { EXPECT_GT(device_->FreeBytes(), 0); });
  in_thread([&] { EXPECT_EQ(ToHost(x, kBytes), std::vector<uint8_t>(kBytes)); });
  in_thread([&] { device_->Free(x, kBytes, MemoryUse::kTensor); });
  in_thread([&] { kernels.reset(); });
  in_thread([&] { device_.reset(); });
}

// Memory that is freed may still be in use by queued work.
TEST_F(CudaDeviceTest, MemoryIsFreedAfterTheWorkThatReadsIt) {
  const auto kernels = std::move(KernelSet::Load(*device_)).value();
  for (const int64_t count : {int64_t{300}, int64_t{1} << 19}) {  // of a slab; of the driver
    const int64_t bytes = count * static_cast<int64_t>(sizeof(float));
    std::byte* const x = Take(bytes);
    std::byte* const y = Take(bytes);
    const float one = 1;
    device_->CopyFromHost(x, &one, sizeof(one), nullptr);
    kernels->Launch<KernelId::kAddRows>(
        {(count + 127) / 128}, {reinterpret_cast<float*>(x), reinterpret_cast<float*>(y), count},
        nullptr);
    device_->Free(x, bytes, MemoryUse::kTensor);
    std::byte* const z = Take(bytes);
    const float seven = 7;
    device_->CopyFromHost(z, &seven, sizeof(seven), nullptr);
    float sum = 0;
    device_->CopyToHost(&sum, y, sizeof(sum), nullptr);
    EXPECT_EQ(sum, 1);
    device_->Free(y, bytes, MemoryUse::kTensor);
    device_->Free(z, bytes, MemoryUse::kTensor);
  }
}

}  // namespace
}  // namespace latte::cuda::device_test
