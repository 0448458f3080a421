// Code shared by measurements: medians, and ceilings for comparison. It measures wall time. Other
// programs may use the machine, so it takes medians, and measures the ceilings close in time.
#pragma once

#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "src/base/json_out_fwd.h"
#include "src/base/timer.h"
#include "src/kernels/op.h"
#include "src/tensor/dtype.h"

namespace latte {

// The middle value; for an even count, the mean of the two middle values. Requires: not empty.
double Median(std::vector<double> values);

// Wall seconds that f() takes.
template <class F>
double SecondsOf(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return SecondsSince(start);
}

// The limits of a kernel's speed. kF32: fused multiply-adds; kBF16, kInt8: AVX-512 dot products of
// bf16 pairs and of four bytes; kAmxBF16, kAmxInt8: tile products; kDram: reading memory once.
enum class Ceiling { kF32, kBF16, kInt8, kAmxBF16, kAmxInt8, kDram };
inline constexpr size_t kCeilings = 6;

// The name in records: "peak_bf16_gflops", "dram_gbps".
std::string_view Name(Ceiling ceiling);

// The arithmetic ceiling of kernels of `isa` that multiply `arithmetic` (f32, bf16 or i8).
Ceiling CeilingOf(Isa isa, DType arithmetic);

// Samples of every ceiling, to be interleaved with a measurement.
class Ceilings {
 public:
  // Measures each for some milliseconds on all threads of `exec`; `dram` also reads 512 MiB.
  void Sample(const Exec& exec, bool dram = false);
  // GFLOP/s, or GB/s for kDram; 0 if the machine lacks the instructions or nothing was sampled.
  double Last(Ceiling ceiling) const;
  double Median(Ceiling ceiling) const;
  // Adds every ceiling to a record; null if it is 0.
  void AddTo(JsonOut& record) const;

 private:
  std::array<std::vector<double>, kCeilings> samples_;
  std::vector<char> memory_;
};

// The work of all ops.
OpWork TotalWork(const OpTimes& times);

// A rate for a record; null for 0.
JsonOut OrNull(double rate);
// A rate as a part of its ceiling; null without a ceiling.
JsonOut Fraction(double rate, double ceiling);

}  // namespace latte
