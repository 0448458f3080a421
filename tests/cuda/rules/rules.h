// Helpers of the tests of the emulator's rules: small kernels that keep or break one rule.
#pragma once

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "src/kernels/cuda/words/device.cuh"
#include "tests/cuda/emulator/emulator.h"

namespace latte::emulator {

inline std::string Joined(const Report& report) {
  std::string text;
  for (const std::string& error : report.errors) text += error + "\n";
  return text;
}

// One block of `threads` lanes with 64 KiB of shared memory.
inline Report RunBlock(int threads, const std::function<void()>& body, const Options& options = {},
                       GlobalMemory* memory = nullptr) {
  GlobalMemory none;
  return Launch({"probe", {}, threads, 64 << 10}, memory != nullptr ? *memory : none, options,
                body);
}

inline void ExpectSilent(const Report& report) { EXPECT_EQ(Joined(report), ""); }

inline void ExpectError(const Report& report, const std::string& part) {
  EXPECT_NE(Joined(report).find(part), std::string::npos) << "expected \"" << part << "\", found:\n"
                                                          << Joined(report);
}

// The address of 32-bit word i of shared memory.
inline cuda::SharedAddr Word(int i) {
  return cuda::SharedBase() + 4 * static_cast<cuda::SharedAddr>(i);
}

}  // namespace latte::emulator
