// The rules of the emulated driver: what a real driver may do at the latest, and what it refuses.
#include "src/tensor/cuda/driver.h"

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "src/kernels/cuda/list.h"
#include "src/kernels/cuda/words/types.h"
#include "src/tensor/cuda/handles.h"
#include "tests/cuda/support/emulated_counts.h"

namespace latte::cuda::driver_test {
namespace {

using testing_support::EmulatedCounts;

constexpr size_t kBytes = 256;

class DriverRulesTest : public testing::Test {
 protected:
  DriverRulesTest() : driver_(Driver::Load().value()) {
    abi::Device device = 0;
    Expect(d().cuDeviceGet(&device, 0));
    Expect(d().cuDevicePrimaryCtxRetain(&context_, device));
    Expect(d().cuCtxSetCurrent(context_));
    Expect(d().cuModuleLoadData(&module_, ""));
    Expect(d().cuModuleGetFunction(&add_, module_, "latte_AddRows"));
    for (abi::Ptr* at : {&a_, &b_}) Expect(d().cuMemAlloc_v2(at, kBytes));
  }
  ~DriverRulesTest() override {
    for (const abi::Ptr at : {a_, b_}) Expect(d().cuMemFree_v2(at));
  }

  const Driver& d() const { return *driver_; }
  static void Expect(abi::Code code, abi::Code expected = abi::kSuccess) {
    EXPECT_EQ(code, expected);
  }
  abi::Code Fill(abi::Ptr at, unsigned char value, const Stream& stream) const {
    return d().cuMemsetD8Async(at, value, kBytes, stream.get());
  }
  // y += x, of floats.
  abi::Code Add(abi::Ptr x, abi::Ptr y, const Stream& stream, unsigned blocks = 1,
                unsigned shared = 0) const {
    AddParams params = {reinterpret_cast<const float*>(x), reinterpret_cast<float*>(y), 64};
    std::array<void*, 1> arguments = {&params};
    return d().cuLaunchKernel(add_, blocks, 1, 1, 128, 1, 1, shared, stream.get(), arguments.data(),
                              nullptr);
  }
  std::vector<uint8_t> Read(abi::Ptr at, const Stream& stream) const {
    std::vector<uint8_t> out(kBytes);
    Expect(d().cuMemcpyDtoHAsync_v2(out.data(), at, kBytes, stream.get()));
    Expect(d().cuStreamSynchronize(stream.get()));
    return out;
  }
  float FirstFloat(abi::Ptr at, const Stream& stream) const {
    float out = 0;
    std::memcpy(&out, Read(at, stream).data(), sizeof(out));
    return out;
  }
  void Write(abi::Ptr at, float value, const Stream& stream) const {
    const std::vector<float> values(kBytes / sizeof(float), value);
    Expect(d().cuMemcpyHtoDAsync_v2(at, values.data(), kBytes, stream.get()));
  }

  std::shared_ptr<const Driver> driver_;
  abi::Context context_ = nullptr;
  abi::Module module_ = nullptr;
  abi::Function add_ = nullptr;
  abi::Ptr a_ = 0, b_ = 0;
};

std::vector<uint8_t> All(uint8_t value) { return std::vector<uint8_t>(kBytes, value); }

TEST_F(DriverRulesTest, AStreamRunsAsLateAsEventsAllow) {
  const Stream first(d()), second(d());
  Expect(Fill(a_, 1, first));
  Expect(d().cuStreamSynchronize(first.get()));
  Expect(Fill(a_, 2, first));
  EXPECT_EQ(Read(a_, second), All(1));  // the second stream does not wait
  const Event filled(d());
  Expect(Fill(a_, 3, first));
  filled.Record(first.get());
  Expect(d().cuStreamWaitEvent(second.get(), filled.get(), 0));
  EXPECT_EQ(Read(a_, second), All(3));
}

TEST_F(DriverRulesTest, AThreadWithoutAContextDoesNothing) {
  const Stream stream(d());
  std::thread([&] {
    abi::Ptr at = 0;
    Expect(d().cuMemAlloc_v2(&at, kBytes), abi::kInvalidContext);
    Expect(Fill(a_, 1, stream), abi::kInvalidHandle);
    Expect(Add(a_, b_, stream), abi::kInvalidHandle);
    Expect(d().cuCtxSetCurrent(context_));
    Expect(Fill(a_, 1, stream));
  }).join();
  EXPECT_EQ(Read(a_, stream), All(1));
}

TEST_F(DriverRulesTest, PinnedMemoryIsReadWhenTheCopyRunsAndOtherMemoryAtTheCall) {
  const Stream stream(d());
  const PinnedMemory pinned(d(), kBytes);
  std::vector<uint8_t> pageable = All(1);
  std::memset(pinned.data(), 1, kBytes);
  Expect(d().cuMemcpyHtoDAsync_v2(a_, pinned.data(), kBytes, stream.get()));
  Expect(d().cuMemcpyHtoDAsync_v2(b_, pageable.data(), kBytes, stream.get()));
  std::memset(pinned.data(), 2, kBytes);
  std::memset(pageable.data(), 2, kBytes);
  EXPECT_EQ(Read(a_, stream), All(2));
  EXPECT_EQ(Read(b_, stream), All(1));
}

TEST_F(DriverRulesTest, EventsTellWhetherTheyHappened) {
  const Stream stream(d());
  const Event never(d()), event(d());
  Expect(d().cuEventQuery(never.get()));
  Expect(Fill(a_, 1, stream));
  event.Record(stream.get());
  Expect(d().cuEventQuery(event.get()), abi::kNotReady);
  event.Await();
  Expect(d().cuEventQuery(event.get()));
}

TEST_F(DriverRulesTest, AFreeWaitsForTheWork) {
  const Stream stream(d());
  abi::Ptr c = 0;
  Expect(d().cuMemAlloc_v2(&c, kBytes));
  Write(a_, 1, stream);
  Write(c, 2, stream);
  Expect(Add(c, a_, stream));
  Expect(d().cuMemFree_v2(c));
  EXPECT_EQ(FirstFloat(a_, stream), 3);
  Expect(d().cuMemFree_v2(c), abi::kInvalidValue);
  Expect(Fill(c, 0, stream), abi::kInvalidValue);
}

TEST_F(DriverRulesTest, LimitsOfALaunch) {
  const Stream stream(d());
  Write(a_, 1, stream);
  Write(b_, 1, stream);
  Expect(Add(a_, b_, stream, 0), abi::kInvalidValue);
  Expect(Add(a_, b_, stream, 1u << 31), abi::kInvalidValue);
  Expect(Add(a_, b_, stream, 1, (48 << 10) + 1), abi::kInvalidValue);
  Expect(d().cuFuncSetAttribute(add_, abi::kMaxDynamicSharedSizeBytes, (227 << 10) + 1),
         abi::kInvalidValue);
  Expect(d().cuFuncSetAttribute(add_, abi::kMaxDynamicSharedSizeBytes, 64 << 10));
  Expect(Add(a_, b_, stream, 1, 64 << 10));
  Expect(d().cuFuncSetAttribute(add_, abi::kMaxDynamicSharedSizeBytes, 48 << 10));
  EXPECT_EQ(FirstFloat(b_, stream), 2);
}

TEST_F(DriverRulesTest, AGraphRepeatsItsWorkAndReadsMemoryAnew) {
  const Stream stream(d());
  const PinnedMemory pinned(d(), kBytes);
  const auto set = [&](float value) {
    const std::vector<float> values(kBytes / sizeof(float), value);
    std::memcpy(pinned.data(), values.data(), kBytes);
  };
  Write(b_, 0, stream);
  set(1);
  Expect(d().cuStreamBeginCapture_v2(stream.get(), abi::kCaptureThreadLocal));
  Expect(d().cuMemcpyHtoDAsync_v2(a_, pinned.data(), kBytes, stream.get()));
  Expect(Add(a_, b_, stream));
  abi::Graph graph = nullptr;
  abi::GraphExec exec = nullptr;
  Expect(d().cuStreamEndCapture(stream.get(), &graph));
  EXPECT_EQ(FirstFloat(b_, stream), 0);  // a capture runs nothing
  Expect(d().cuGraphInstantiateWithFlags(&exec, graph, 0));
  Expect(d().cuGraphDestroy(graph));
  for (const float expected : {1.0f, 11.0f, 21.0f}) {
    Expect(d().cuGraphLaunch(exec, stream.get()));
    EXPECT_EQ(FirstFloat(b_, stream), expected);
    set(10);
  }
  Expect(d().cuGraphExecDestroy(exec));
}

// Each of these ends the capture, which then gives no graph.
TEST_F(DriverRulesTest, ACaptureRefusesWaitsMemoryAndPageableCopies) {
  const Stream stream(d()), other(d());
  const Event event(d());
  event.Record(other.get());
  std::vector<uint8_t> pageable = All(1);
  abi::Ptr taken = 0;
  void* host = nullptr;
  const std::vector<std::function<abi::Code()>> calls = {
      [&] { return d().cuStreamSynchronize(stream.get()); },
      [&] { return d().cuStreamSynchronize(other.get()); },
      [&] { return d().cuEventSynchronize(event.get()); },
      [&] { return d().cuMemAlloc_v2(&taken, kBytes); },
      [&] { return d().cuMemFree_v2(a_); },
      [&] { return d().cuMemHostAlloc(&host, kBytes, 0); },
      [&] { return d().cuMemcpyHtoDAsync_v2(a_, pageable.data(), kBytes, stream.get()); },
      [&] { return d().cuMemcpyDtoHAsync_v2(pageable.data(), a_, kBytes, stream.get()); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(i);
    Expect(d().cuStreamBeginCapture_v2(stream.get(), abi::kCaptureThreadLocal));
    Expect(Fill(a_, 1, stream));
    Expect(calls[i](), abi::kStreamCaptureUnsupported);
    abi::Graph graph = nullptr;
    Expect(d().cuStreamEndCapture(stream.get(), &graph), abi::kStreamCaptureInvalidated);
  }
  Expect(Fill(a_, 2, stream));
  EXPECT_EQ(Read(a_, stream), All(2));
}

TEST_F(DriverRulesTest, AnEventOfACaptureCannotBeAwaited) {
  const Stream stream(d());
  const Event event(d());
  Expect(d().cuStreamBeginCapture_v2(stream.get(), abi::kCaptureThreadLocal));
  event.Record(stream.get());
  Expect(d().cuEventSynchronize(event.get()), abi::kCapturedEvent);
  abi::Graph graph = nullptr;
  Expect(d().cuStreamEndCapture(stream.get(), &graph), abi::kStreamCaptureInvalidated);
}

using DriverRulesDeathTest = DriverRulesTest;
TEST_F(DriverRulesDeathTest, TheHostCannotReadMemoryOfTheDevice) {
  const Stream stream(d());
  Expect(Fill(a_, 1, stream));
  Expect(d().cuStreamSynchronize(stream.get()));
  EXPECT_DEATH(EXPECT_EQ(*reinterpret_cast<const volatile char*>(a_), 1), "");
}

// Arguments of cuTensorMapEncodeTiled: 64 columns of 100 rows of 3 pages, in bf16.
struct TiledMap {
  int type = abi::kMapBf16;
  unsigned rank = 3;
  uint64_t at = 0;
  std::array<uint64_t, 6> sizes = {576, 100, 3, 1, 1, 1};
  std::array<uint64_t, 5> strides = {1152, 115200, 345600, 345600, 345600};
  std::array<uint32_t, 6> box = {64, 64, 1, 1, 1, 1}, steps = {1, 1, 1, 1, 1, 1};
  int interleave = abi::kMapInterleaveNone, swizzle = abi::kMapSwizzle128;
  int fill = abi::kMapFillZeros;

  abi::Code Encode(const Driver& driver, uint64_t place, size_t offset = 0) {
    alignas(64) std::array<std::byte, 2 * sizeof(TensorMap)> map;
    return driver.cuTensorMapEncodeTiled(map.data() + offset, type, rank,
                                         reinterpret_cast<void*>(place + at), sizes.data(),
                                         strides.data(), box.data(), steps.data(), interleave,
                                         swizzle, abi::kMapL2Promotion256, fill);
  }
};

TEST_F(DriverRulesTest, LimitsOfATensorMap) {
  Expect(TiledMap().Encode(d(), a_));
  const std::vector<std::pair<const char*, TiledMap>> refused = {
      {"no dimension", {.rank = 0}},
      {"six dimensions", {.rank = 6}},
      {"address of 8 bytes", {.at = 8}},
      {"nothing in a dimension", {.sizes = {576, 0, 3}}},
      {"more than 2^32", {.sizes = {(uint64_t{1} << 32) + 1, 100, 3}}},
      {"stride of 8 bytes", {.strides = {1160, 116000}}},
      {"stride of 2^40", {.strides = {1152, uint64_t{1} << 40}}},
      {"empty box", {.box = {64, 0, 1}}},
      {"box of 257", {.box = {64, 257, 1}}},
      {"box of 24 bytes", {.box = {12, 64, 1}}},
      {"box wider than the swizzle", {.box = {128, 64, 1}}},
      {"box wider than a small swizzle", {.swizzle = abi::kMapSwizzle64}},
      {"no step", {.steps = {1, 0, 1}}},
      {"step of 9", {.steps = {1, 9, 1}}},
      {"an element type of 8 bytes", {.type = 8}},
      {"NaN among integers", {.type = abi::kMapU8, .box = {128, 64, 1}, .fill = abi::kMapFillNan}},
  };
  for (auto [name, map] : refused) {
    SCOPED_TRACE(name);
    Expect(map.Encode(d(), a_), abi::kInvalidValue);
  }
  Expect(TiledMap().Encode(d(), a_, 32), abi::kInvalidValue);
  EXPECT_EQ(EmulatedCounts().reports, 0);
}

}  // namespace
}  // namespace latte::cuda::driver_test
