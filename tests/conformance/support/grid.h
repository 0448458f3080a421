// Code shared by the grids of the attention tests: random numbers and tolerances of FlashMLA's
// tests, and the share of a grid that is run.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/conformance/support/gpu.h"
#include "tests/conformance/support/guarded.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/support/sanitizers.h"

namespace latte {

// Writes element i of a row of f32, f16 or bf16.
inline void PutValue(const TensorView& row, int64_t i, float value) {
  if (row.dtype == DType::kF32) {
    row.Ptr<float>()[i] = value;
  } else {
    const uint16_t bits = FloatTo16(value, row.dtype);
    std::memcpy(row.data + 2 * i, &bits, 2);
  }
}

// N(0, 1)/10 limited to [−1, 1] and rounded to bf16, like the inputs of those tests. Rows are
// slices of one list: generating every number would take longer than the kernels.
class Normals {
 public:
  Normals() : values_(1 << 16) {
    std::mt19937 rng(1);
    std::normal_distribution<float> normal(0.0f, 0.1f);
    for (float& value : values_) value = RoundToBF16(std::clamp(normal(rng), -1.0f, 1.0f));
  }

  void operator()(const TensorView& t, std::mt19937& rng) const {
    const int64_t width = t.shape[static_cast<size_t>(t.rank - 1)];
    for (int64_t i = 0; i < (t.rank > 1 ? t.shape[0] : 1); ++i)
      for (int64_t j = 0; j < (t.rank > 2 ? t.shape[1] : 1); ++j) {
        const int64_t at = (t.rank > 1 ? i * t.stride[0] : 0) + (t.rank > 2 ? j * t.stride[1] : 0);
        Fill(t.data + at * SizeOf(t.dtype), t.dtype, width, rng);
      }
  }

 private:
  void Fill(std::byte* to, DType dtype, int64_t count, std::mt19937& rng) const {
    const TensorView row(to, dtype, {count});
    const size_t at = rng() % values_.size();
    for (int64_t i = 0; i < count; ++i)
      PutValue(row, i, values_[(at + static_cast<size_t>(i)) % values_.size()]);
  }

  std::vector<float> values_;
};

// Fills rank 3 of f32.
inline void FillWith(const TensorView& t, float value) {
  for (int64_t i = 0; i < t.shape[0]; ++i)
    for (int64_t j = 0; j < t.shape[1]; ++j)
      std::fill_n(t.Ptr<float>() + i * t.stride[0] + j * t.stride[1], t.shape[2], value);
}

// An output passes if it meets either limit.
struct Tolerance {
  double absolute, relative;
  double Of(double want) const { return std::max(absolute, relative * std::abs(want)); }
};
struct GridTolerance {
  Tolerance out, lse;
  double cosine;
};
// FlashMLA's tolerances for dense decoding and for sparse prefill.
inline constexpr GridTolerance kDecodeGrid = {{8e-4, 2.01 / 128}, {1e-6, 8.01 / 65536}, 5e-6};
inline constexpr GridTolerance kPrefillGrid = {{8e-4, 3.01 / 128}, {1e-6, 2.01 / 65536}, 7e-6};

// 1 − 2·ab/(a² + b²): 0 for equal tensors, 1 for orthogonal ones.
class CosineDifference {
 public:
  void Add(std::span<const float> a, std::span<const float> b) {
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = static_cast<double>(a[i]);
      const double y = static_cast<double>(b[i]);
      products_ += x * y;
      squares_ += x * x + y * y;
    }
  }
  double Value() const { return squares_ == 0 ? 0 : 1 - 2 * products_ / squares_; }

 private:
  double products_ = 0, squares_ = 0;
};

// |got − want| ≤ limit; infinities must be equal, and NaN must match.
inline bool IsWithin(float got, float want, double limit) {
  if (std::isnan(want)) return std::isnan(got);
  if (got == want) return true;
  const double error = std::abs(static_cast<double>(got) - static_cast<double>(want));
  return std::isfinite(want) && error <= limit;
}

inline ::testing::AssertionResult RowWithin(std::span<const float> got, std::span<const float> want,
                                            const Tolerance& tolerance) {
  for (size_t i = 0; i < want.size(); ++i) {
    const double limit = tolerance.Of(static_cast<double>(want[i]));
    if (!IsWithin(got[i], want[i], limit))
      return ::testing::AssertionFailure() << fmt::format(
                 "number {}: {} instead of {}, at most {:.3g} off", i, got[i], want[i], limit);
  }
  return ::testing::AssertionSuccess();
}

// Sanitizers make cases up to ten times slower, and an emulated GPU more than that: then only one
// case, sequence or run in this many is used.
inline size_t GridShare() {
  if (GpuIsEmulated()) return 16;
  return testing_support::kUnderTsan ? 8 : testing_support::kUnderAsan ? 4 : 1;
}

// Two and three threads must give the bits of one thread.
template <class Row, class Case>
void ExpectSameBitsEachRun(const Row& row, Case& c, int runs) {
  RunKernel(row, c.Params(), 1);
  const std::vector<std::byte> o = c.o.Bytes();
  const std::vector<std::byte> lse = c.lse.Bytes();
  for (int run = 0; run < runs; ++run) {
    c.PoisonOutputs();
    RunKernel(row, c.Params(), 2 + run % 2);
    ASSERT_EQ(c.o.Bytes(), o) << "run " << run;
    ASSERT_EQ(c.lse.Bytes(), lse) << "run " << run;
  }
}

}  // namespace latte
