// Counts of the emulated driver of this process.
#pragma once

#include <cstdlib>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/cuda/driver/counts.h"

namespace latte::testing_support {

// Fails the test if a rule was broken. Requires: the driver of LATTE_CUDA_DRIVER is loaded.
inline emulator::Counts EmulatedCounts() {
  void* const library = dlopen(std::getenv("LATTE_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  const auto counts =
      reinterpret_cast<decltype(&latte_emulated_counts)>(dlsym(library, "latte_emulated_counts"));
  emulator::Counts out;
  const char* const report = counts(&out);
  EXPECT_EQ(out.reports, 0) << report;
  return out;
}

}  // namespace latte::testing_support
