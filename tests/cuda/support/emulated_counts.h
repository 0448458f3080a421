// Counts, transfers and memory of the emulated driver of this process.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/cuda/driver/counts.h"

namespace latte::testing_support {

// A function of the driver of LATTE_CUDA_DRIVER.
template <class Function>
Function* EmulatedFunction(const char* name) {
  void* const library = dlopen(std::getenv("LATTE_CUDA_DRIVER"), RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// Fails the test if a rule was broken.
inline emulator::Counts EmulatedCounts() {
  auto* const counts = EmulatedFunction<decltype(latte_emulated_counts)>("latte_emulated_counts");
  emulator::Counts out;
  const char* const report = counts(&out);
  EXPECT_EQ(out.reports, 0) << report;
  return out;
}

// The transfers from number `begin` on.
inline std::vector<emulator::Transfer> EmulatedTransfers(int64_t begin) {
  auto* const transfers =
      EmulatedFunction<decltype(latte_emulated_transfers)>("latte_emulated_transfers");
  std::vector<emulator::Transfer> out(
      static_cast<size_t>(std::max<int64_t>(transfers(begin, nullptr, 0) - begin, 0)));
  transfers(begin, out.data(), std::ssize(out));
  return out;
}

// As latte_emulated_memory.
inline void SetEmulatedMemory(int64_t bytes, int64_t taken_later = 0) {
  EmulatedFunction<decltype(latte_emulated_memory)>("latte_emulated_memory")(bytes, taken_later);
}

// The counts between two moments.
struct Counted {
  explicit Counted(const emulator::Counts& before) : before_(before), after_(EmulatedCounts()) {}
  int64_t Of(int64_t emulator::Counts::*count) const { return after_.*count - before_.*count; }

 private:
  emulator::Counts before_, after_;
};

// A test with plenty of memory on the GPU, of which nothing is left in use.
class OnEmulatedGpu : public testing::Test {
 protected:
  OnEmulatedGpu() { SetEmulatedMemory(kPlenty); }
  ~OnEmulatedGpu() override {
    SetEmulatedMemory(kPlenty);
    EXPECT_EQ(EmulatedCounts().bytes_in_use, 0);
    EXPECT_EQ(EmulatedCounts().pinned_bytes, 0);
  }
  static constexpr int64_t kPlenty = int64_t{8} << 30;
};

}  // namespace latte::testing_support
