// Texts of tests/goldens with their logits, and distances between logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "tests/support/npy_reader.h"

namespace latte::testing_support {

// As in tests/goldens.
inline constexpr double kGoldenTolerance = 2e-4;

inline std::string GoldenDir(const std::string& name) {
  return std::string(LATTE_SOURCE_DIR) + "/tests/goldens/" + name;
}

// The first tokens of a golden text. Later tokens change no logits of earlier ones.
inline std::vector<int32_t> GoldenTokens(const std::string& name, size_t count) {
  const Json ids = *Json::Parse(*ReadFile(GoldenDir(name) + "/tokens.json", 1 << 20), "tokens");
  std::vector<int32_t> out;
  for (size_t i = 0; i < count; ++i) out.push_back(static_cast<int32_t>(*ids.At(i).AsInt()));
  return out;
}

// The largest difference between `logits` and as many numbers at the front of a golden file.
inline double MaxError(std::span<const float> logits, const Matrix& golden) {
  EXPECT_LE(logits.size(), golden.values.size());
  EXPECT_FALSE(logits.empty());
  double worst = 0;
  for (size_t i = 0; i < std::min(logits.size(), golden.values.size()); ++i) {
    const double error =
        std::abs(static_cast<double>(logits[i]) - static_cast<double>(golden.values[i]));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

// The mean over rows of the KL divergence of softmax(b) from softmax(a).
inline double MeanKl(std::span<const float> a, std::span<const float> b, int64_t columns) {
  const auto log_sum = [&](const float* row) {
    double max = row[0], sum = 0;
    for (int64_t i = 0; i < columns; ++i) max = std::max(max, static_cast<double>(row[i]));
    for (int64_t i = 0; i < columns; ++i) sum += std::exp(static_cast<double>(row[i]) - max);
    return max + std::log(sum);
  };
  EXPECT_EQ(a.size(), b.size());
  EXPECT_FALSE(a.empty());
  double total = 0;
  const int64_t rows = std::ssize(a) / columns;
  for (int64_t r = 0; r < rows; ++r) {
    const float *const x = a.data() + r * columns, *const y = b.data() + r * columns;
    const double of_x = log_sum(x), of_y = log_sum(y);
    for (int64_t i = 0; i < columns; ++i) {
      const double log_p = static_cast<double>(x[i]) - of_x;
      total += std::exp(log_p) * (log_p - (static_cast<double>(y[i]) - of_y));
    }
  }
  return total / static_cast<double>(rows);
}

}  // namespace latte::testing_support
