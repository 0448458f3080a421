// What measurements share: medians, and the arithmetic peak to compare with. Measures wall time on
// a machine that others may use too; hence medians, and peaks taken next to what they are quoted
// for.
#pragma once

#include <chrono>
#include <vector>

#include "src/kernels/op.h"
#include "src/tensor/dtype.h"

namespace latte {

// The middle value; the mean of the two middle ones of an even count. Requires: not empty.
double Median(std::vector<double> values);

// Wall seconds that f() takes.
template <class F>
double SecondsOf(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// GFLOP/s of all threads of `exec` multiplying and adding in registers for some milliseconds; 0
// where the machine has no instructions for it. arithmetic: f32, or bf16 with sums in f32.
double MeasurePeak(DType arithmetic, const Exec& exec);

}  // namespace latte
