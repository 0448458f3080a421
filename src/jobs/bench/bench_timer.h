// What measurements share: medians, and the ceilings to compare with. Measures wall time on a
// machine that others may use too; hence medians, and ceilings taken next to what they are quoted
// for.
#pragma once

#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "src/base/json_out_fwd.h"
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

// What a kernel can be bound by. kF32: fused multiply-adds; kBF16, kInt8: AVX-512 dot products of
// pairs and of four bytes; kAmxBF16, kAmxInt8: tiles; kDram: reading memory once.
enum class Ceiling { kF32, kBF16, kInt8, kAmxBF16, kAmxInt8, kDram };
inline constexpr size_t kCeilings = 6;

// "peak_bf16_gflops", "dram_gbps": how records name it.
std::string_view Name(Ceiling ceiling);

// The arithmetic ceiling of rows of `isa` that multiply `arithmetic` (f32, bf16 or i8).
Ceiling CeilingOf(Isa isa, DType arithmetic);

// Samples of every ceiling, to be taken in turn with what is measured.
class Ceilings {
 public:
  // Some milliseconds of each, on all threads of `exec`; `dram` reads 512 MiB besides.
  void Sample(const Exec& exec, bool dram = false);
  // GFLOP/s, or GB/s for kDram; 0 where the machine has no such instructions or nothing was
  // sampled.
  double Last(Ceiling ceiling) const;
  double Median(Ceiling ceiling) const;
  // Adds every ceiling to a record, null where it is 0.
  void AddTo(JsonOut& record) const;

 private:
  std::array<std::vector<double>, kCeilings> samples_;
  std::vector<char> memory_;
};

// A rate for a record: null for 0.
JsonOut OrNull(double rate);

}  // namespace latte
