// Small cases computed by hand, for every kernel: products, norms, rotation, conversions.
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/support/run_kernels.h"

namespace latte::hand_pointwise_test {
namespace {

using Floats = std::vector<float>;
constexpr float kInf = std::numeric_limits<float>::infinity();

TensorView View(Floats& values, std::initializer_list<int64_t> dims) {
  return {values.data(), DType::kF32, dims};
}

TEST(Hand, Linear) {
  Floats x = {1, 2, 3, -1, 0, 4};
  Floats w = {1, 0, 2, 5, -1, 1};
  Floats bias = {10, 20};
  ForEachKernelFor<GemmOp>({1, 1, 1, 3, DType::kF32, DType::kF32}, [&](const Kernel<GemmOp>&
                                                                           kernel) {
    Floats y(4, -1);
    RunPart(kernel, {View(x, {1, 2, 3}), View(w, {1, 2, 3}), View(bias, {2}), View(y, {1, 2, 2})});
    EXPECT_EQ(y, (Floats{17, 26, 17, 19}));
  });
}

TEST(Hand, LinearWidensF16AndBF16) {
  Floats x = {1, 1, 1};
  // f16: 1.5, the smallest subnormal 2^−24, −65504; bf16: 1.5, 2^−133, −2^127.
  std::vector<uint16_t> f16 = {0x3e00, 0x0001, 0xfbff};
  std::vector<uint16_t> bf16 = {0x3fc0, 0x0001, 0xff00};
  ForEachKernelFor<GemmOp>(
      {1, 1, 1, 3, DType::kF32, DType::kF32}, [&](const Kernel<GemmOp>& kernel) {
        for (size_t i = 0; i < 3; ++i) {
          Floats one = {0, 0, 0};
          one[i] = 1;
          Floats y(1);
          RunPart(kernel, {View(one, {1, 1, 3}), TensorView(f16.data(), DType::kF16, {1, 1, 3}),
                           TensorView(), View(y, {1, 1, 1})});
          EXPECT_EQ(y[0], (Floats{1.5f, 0x1p-24f, -65504.0f})[i]);
          RunPart(kernel, {View(one, {1, 1, 3}), TensorView(bf16.data(), DType::kBF16, {1, 1, 3}),
                           TensorView(), View(y, {1, 1, 1})});
          EXPECT_EQ(y[0], (Floats{1.5f, 0x1p-133f, -0x1p127f})[i]);
        }
      });
}

TEST(Hand, LinearT) {
  Floats x = {1, 2, -1, 3};
  Floats w = {1, 0, 2, 5, -1, 1};
  const GemmTOp::Shape shape = {1, 2, 2, 3, DType::kF32, DType::kF32};
  ForEachKernelFor<GemmTOp>(shape, [&](const Kernel<GemmTOp>& kernel) {
    Floats y(6, -1);
    RunKernel(kernel, {View(x, {1, 2, 2}), View(w, {1, 2, 3}), View(y, {1, 2, 3})});
    EXPECT_EQ(y, (Floats{11, -2, 4, 14, -3, 1}));
  });
}

// Columns 0 to 63 of the first row have the scale 2, of the second 0.5; the others 1 and −4.
TEST(Hand, LinearTOfFourBits) {
  constexpr int64_t k = 128;
  const auto first = [](int64_t i) { return i * 5 % 16; };
  const auto second = [](int64_t i) { return (7 + i * 11) % 16; };
  std::vector<uint8_t> w;
  for (const auto& code : {std::function<int64_t(int64_t)>(first), {second}})
    for (int64_t i = 0; i < k; i += 2)
      w.push_back(static_cast<uint8_t>(code(i) | code(i + 1) << 4));
  Floats scale = {2, 1, 0.5f, -4};
  Floats x = {3, -0x1p-8f, 0, 0, std::numeric_limits<float>::quiet_NaN(), 1};
  GemmTOp::Params p{View(x, {1, 3, 2}), TensorView(w.data(), DType::kU4, {1, 2, k / 2})};
  p.w_scale.scale = View(scale, {2, 2});
  p.w_scale.rows = 1;
  p.w_scale.columns = k / 2;
  Floats y(3 * k, -7);
  p.y = View(y, {1, 3, k});
  ForEachKernelFor<GemmTOp>(GemmTOp::ShapeOf(p), [&](const Kernel<GemmTOp>& kernel) {
    RunKernel(kernel, p);
    for (int64_t i = 0; i < k; ++i) {
      const auto a = static_cast<float>(first(i) - 8), b = static_cast<float>(second(i) - 8);
      EXPECT_EQ(y[static_cast<size_t>(i)], i < k / 2 ? 6 * a - 0x1p-9f * b : 3 * a + 0x1p-6f * b)
          << "column " << i;
      EXPECT_EQ(y[static_cast<size_t>(k + i)], 0.0f);
      EXPECT_TRUE(std::isnan(y[static_cast<size_t>(2 * k + i)]));
    }
  });
}

// N = 131: two blocks, the second with a last row that is not part of a pair; scales of ½, 1, 2. A
// NaN in an activation row makes all its outputs NaN.
TEST(Hand, LinearTOfInt8) {
  constexpr size_t n = 131, k = 128;
  const auto code = [](size_t i, size_t j) {
    return static_cast<int>((3 * i + 5 * j) % 255) - 127;
  };
  const auto scale_of = [](size_t i) { return std::ldexp(1.0f, static_cast<int>(i % 3) - 1); };
  std::vector<int8_t> w(n * k);
  Floats scale(n);
  for (size_t i = 0; i < n; ++i) {
    scale[i] = scale_of(i);
    for (size_t j = 0; j < k; ++j) w[i * k + j] = static_cast<int8_t>(code(i, j));
  }
  for (const size_t rows : {1, 4, 7, 100}) {
    std::vector<uint16_t> x(rows * n, 0);  // row m: 1 at weight row m, −2 at weight row 130 − m
    for (size_t m = 0; m < rows; ++m) {
      x[m * n + m % 60] = 0x3f80;
      x[m * n + n - 1 - m % 60] = 0xc000;
    }
    if (rows > 1) x[(rows - 1) * n + 70] = 0x7fc0;
    Floats y(rows * k, -7);
    const auto m_rows = static_cast<int64_t>(rows);
    GemmTOp::Params p{TensorView(x.data(), DType::kBF16, {1, m_rows, n}),
                      TensorView(w.data(), DType::kI8, {1, n, k}), View(y, {1, m_rows, k})};
    p.w_scale.scale = View(scale, {n, 1});
    p.w_scale.rows = 1;
    p.w_scale.columns = k;
    ForEachKernelFor<GemmTOp>(GemmTOp::ShapeOf(p), [&](const Kernel<GemmTOp>& kernel) {
      RunKernel(kernel, p);
      for (size_t m = 0; m < rows; ++m)
        for (size_t j = 0; j < k; ++j) {
          const float found = y[m * k + j];
          if (rows > 1 && m == rows - 1) {
            EXPECT_TRUE(std::isnan(found)) << "row " << m << " column " << j;
            continue;
          }
          const size_t first = m % 60, last = n - 1 - first;
          EXPECT_EQ(found, static_cast<float>(code(first, j)) * scale_of(first) -
                               2 * static_cast<float>(code(last, j)) * scale_of(last))
              << "row " << m << " column " << j;
        }
    });
  }
}

// N = 20, with weights 0, ±1, 448 and the smallest number (halved for e4m3fnuz), and one NaN. Rows
// 0 to 15 have the scales 2 and 1, one per 32 columns, the others 0.5 and −4.
TEST(Hand, LinearTOfE4m3) {
  constexpr size_t n = 20, k = 64, nan_row = 3, nan_column = 10;
  constexpr uint8_t kCodes[] = {0x00, 0x38, 0xb8, 0x7e, 0x81};
  constexpr float kValues[] = {0, 1, -1, 448, -0x1p-9f};
  const auto which = [](size_t i, size_t j) { return (3 * i + 2 * j) % 5; };
  Floats scale = {2, 1, 0.5f, -4};
  std::vector<uint16_t> x(5 * n, 0);  // row m: 1 at weight row m, −2 at weight row 19 − m
  for (size_t m = 0; m < 5; ++m) {
    x[m * n + m] = 0x3f80;
    x[m * n + n - 1 - m] = 0xc000;
  }
  for (const DType type : {DType::kF8E4M3, DType::kF8E4M3Fnuz}) {
    const bool fnuz = type == DType::kF8E4M3Fnuz;
    std::vector<uint8_t> w(n * k);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < k; ++j) w[i * k + j] = kCodes[which(i, j)];
    w[nan_row * k + nan_column] = fnuz ? 0x80 : 0xff;
    for (const int64_t rows : {1, 5}) {
      Floats y(static_cast<size_t>(rows) * k, -7);
      GemmTOp::Params p{TensorView(x.data(), DType::kBF16, {1, rows, n}),
                        TensorView(w.data(), type, {1, n, k}), View(y, {1, rows, k})};
      p.w_scale.scale = View(scale, {2, 2});
      p.w_scale.rows = 16;
      p.w_scale.columns = 32;
      ForEachKernelFor<GemmTOp>(GemmTOp::ShapeOf(p), [&](const Kernel<GemmTOp>& kernel) {
        RunKernel(kernel, p);
        for (size_t m = 0; m < static_cast<size_t>(rows); ++m)
          for (size_t j = 0; j < k; ++j) {
            const float found = y[m * k + j];
            if (j == nan_column) {
              EXPECT_TRUE(std::isnan(found)) << "row " << m;
              continue;
            }
            const size_t run = j < 32 ? 0 : 1;
            const float last = kValues[which(n - 1 - m, j)] * scale[(m < 4 ? 2 : 0) + run];
            const float want = kValues[which(m, j)] * scale[run] - 2 * last;
            EXPECT_EQ(found, fnuz ? want / 2 : want) << "row " << m << " column " << j;
          }
      });
    }
  }
}

TEST(Hand, RmsNorm) {
  Floats x = {3, 4};
  Floats w = {2, 1};
  ForEachKernel<RmsNormOp>([&](const Kernel<RmsNormOp>& kernel) {
    Floats y(2);
    RunKernel(kernel, {View(x, {1, 2}), View(w, {2}), View(y, {1, 2}), 0.0f});
    EXPECT_FLOAT_EQ(y[0], static_cast<float>(6 / std::sqrt(12.5)));
    EXPECT_FLOAT_EQ(y[1], static_cast<float>(4 / std::sqrt(12.5)));
    Floats zero = {0, 0};
    RunKernel(kernel, {View(zero, {1, 2}), View(w, {2}), View(y, {1, 2}), 1e-6f});
    EXPECT_EQ(y, (Floats{0, 0}));
  });
}

// Mean 2, variance 6.5.
TEST(Hand, LayerNorm) {
  Floats x = {5, 0, 4, -1, 3, 3, 3, 3};
  Floats w = {1, 2, -1, 3};
  Floats b = {0, 10, 1, 0.5f};
  ForEachKernel<LayerNormOp>([&](const Kernel<LayerNormOp>& kernel) {
    Floats y(8);
    RunKernel(kernel, {View(x, {2, 4}), View(w, {4}), View(b, {4}), View(y, {2, 4}), 1.5f});
    const double root = std::sqrt(8.0);  // variance + epsilon
    const double want[] = {3 / root, 10 - 4 / root, 1 - 2 / root, 0.5 - 9 / root};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_FLOAT_EQ(y[i], static_cast<float>(want[i])) << i;
      EXPECT_EQ(y[4 + i], b[i]);  // no variance
    }
    Floats own = x;
    RunKernel(kernel, {View(own, {2, 4}), View(w, {4}), View(b, {4}), View(own, {2, 4}), 1.5f});
    EXPECT_EQ(own, y);
  });
}

// silu(gate) · up of special numbers: products of one term.
TEST(Hand, Gates) {
  Floats one = {1};
  Floats gate = {0, 1, -1, 200, -200, kInf, std::nanf("")};
  Floats up = {5, 2, 2, 3, 3, 1, 1};
  const auto e = static_cast<float>(std::exp(1.0));
  ForEachKernel<GemmOp>([&](const Kernel<GemmOp>& kernel) {
    Floats y(7);
    GemmProblem p;
    p.x = View(one, {1, 1, 1});
    p.w = View(up, {1, 7, 1});
    p.gate = View(gate, {1, 7, 1});
    p.y = View(y, {1, 1, 7});
    if (!kernel.supports(GemmOp::ShapeOf(p))) return;
    RunPart(kernel, p);
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_FLOAT_EQ(y[1], 2 * e / (e + 1));
    EXPECT_FLOAT_EQ(y[2], -2 / (e + 1));
    EXPECT_EQ(y[3], 600.0f);
    EXPECT_EQ(y[4], 0.0f);
    EXPECT_EQ(y[5], kInf);
    EXPECT_TRUE(std::isnan(y[6]));
  });
}

TEST(Hand, RopeByAQuarterAndAnEighthOfATurn) {
  const auto half = static_cast<float>(std::sqrt(0.5));
  Floats cos = {0, half};
  Floats sin = {1, half};
  ForEachKernel<RopeOp>([&](const Kernel<RopeOp>& kernel) {
    Floats interleaved = {1, 2, 3, 4};  // pairs (1, 2), (3, 4)
    RunKernel(kernel, {View(interleaved, {1, 1, 4}), View(cos, {1, 2}), View(sin, {1, 2}), true});
    EXPECT_EQ(interleaved[0], -2.0f);
    EXPECT_EQ(interleaved[1], 1.0f);
    EXPECT_FLOAT_EQ(interleaved[2], -half);
    EXPECT_FLOAT_EQ(interleaved[3], 7 * half);
    Floats halves = {1, 3, 2, 4};  // the same pairs, half a row apart
    RunKernel(kernel, {View(halves, {1, 1, 4}), View(cos, {1, 2}), View(sin, {1, 2}), false});
    EXPECT_EQ(halves[0], -2.0f);
    EXPECT_EQ(halves[2], 1.0f);
    EXPECT_FLOAT_EQ(halves[1], -half);
    EXPECT_FLOAT_EQ(halves[3], 7 * half);
  });
}

TEST(Hand, RopeAnglesAreTheFp32Product) {
  Floats frequency = {1.0f, 0.75f};
  const std::vector<int32_t> positions = {0, 160000, 16777217};  // the last becomes 2^24 in f32
  ForEachKernel<RopeAnglesOp>([&](const Kernel<RopeAnglesOp>& kernel) {
    Floats cos(6), sin(6);
    RunKernel(kernel, {positions, View(frequency, {2}), 0.5, View(cos, {3, 2}), View(sin, {3, 2})});
    EXPECT_EQ(cos[0], 0.5f);
    EXPECT_EQ(sin[1], 0.0f);
    EXPECT_EQ(sin[3], static_cast<float>(std::sin(120000.0) * 0.5));
    EXPECT_EQ(cos[4], static_cast<float>(std::cos(16777216.0) * 0.5));
  });
}

// 1 + 0.1·ln(1 + ⌊p/8192⌋), rounded to f32 once. Rows end before the next begins.
TEST(Hand, QueryTemperatureRisesAtWholePeriods) {
  const std::vector<int32_t> positions = {0, 8191, 8192, 16383, 16384, 1048575, 1048576};
  const std::vector<double> factors = {1,
                                       1,
                                       1.0693147180559945,
                                       1.0693147180559945,
                                       1.1098612288668109,
                                       1.4852030263919618,
                                       1.4859812404361672};
  ForEachKernel<QueryTemperatureOp>([&](const Kernel<QueryTemperatureOp>& kernel) {
    Floats x(7 * 3);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i);
    const Floats before = x;
    TensorView rows = View(x, {7, 3});
    rows.shape[1] = 2;
    RunKernel(kernel, {positions, 0.1, 8192, rows});
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(x[i], i % 3 == 2 ? before[i] : before[i] * static_cast<float>(factors[i / 3]))
          << "row " << i / 3;
  });
}

TEST(Hand, RowsAreFiniteOrNot) {
  ForEachKernel<FiniteRowsOp>([&](const Kernel<FiniteRowsOp>& kernel) {
    Floats x(5 * 4, 1.0f);
    TensorView rows = View(x, {5, 4});
    rows.shape[1] = 3;
    x[3] = NAN;  // beyond the first row
    x[4 + 2] = INFINITY;
    x[8] = -INFINITY;
    x[12 + 1] = NAN;
    x[16] = -3.4e38f;
    std::vector<int32_t> finite(5, 7);
    RunKernel(kernel, {rows, finite});
    EXPECT_EQ(finite, (std::vector<int32_t>{1, 0, 0, 0, 1}));
    RunKernel(kernel, {rows.Slice(0, 0, 0), {}});
  });
}

TEST(Hand, DraftsArePackedIntoTheirSlots) {
  ForEachKernel<PackDraftsOp>([&](const Kernel<PackDraftsOp>& kernel) {
    Floats x = {1, 2, 3, 4, 5, 6}, y(4 * 2, 9.0f);
    const std::vector<int32_t> slots = {3, -1, 0};
    RunKernel(kernel, {View(x, {3, 2}), slots, View(y, {4, 2})});
    EXPECT_EQ(y, (Floats{5, 6, 9, 9, 9, 9, 1, 2}));
  });
}

TEST(Hand, APageIsCopiedInEveryLayer) {
  ForEachKernel<CopyPageOp>([&](const Kernel<CopyPageOp>& kernel) {
    // Two layers of three pages with one row of two numbers.
    Floats first = {0, 1, 2, 3, 4, 5}, second = {10, 11, 12, 13, 14, 15}, packed(4);
    const std::vector<TensorView> layers = {View(first, {3, 1, 2}), View(second, {3, 1, 2})};
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(packed));
    RunKernel(kernel, {.layers = layers, .from = 2, .to = 0});
    EXPECT_EQ(first, (Floats{4, 5, 2, 3, 4, 5}));
    EXPECT_EQ(second, (Floats{14, 15, 12, 13, 14, 15}));
    RunKernel(kernel, {.layers = layers, .from = 1, .packed = bytes});
    EXPECT_EQ(packed, (Floats{2, 3, 12, 13}));
    RunKernel(kernel, {.layers = layers, .to = 2, .packed = bytes});
    EXPECT_EQ(first, (Floats{4, 5, 2, 3, 2, 3}));
    EXPECT_EQ(second, (Floats{14, 15, 12, 13, 12, 13}));
  });
}

TEST(Hand, CastCopiesAndRepeats) {
  ForEachKernel<CastOp>([&](const Kernel<CastOp>& kernel) {
    Floats x = {1, 2, 3, 4};
    Floats y(8, 9.0f);
    TensorView repeated = View(x, {2, 1, 2});
    repeated.shape[1] = 2;
    repeated.stride[1] = 0;
    RunKernel(kernel, {repeated, View(y, {2, 2, 2})});
    EXPECT_EQ(y, (Floats{1, 2, 1, 2, 3, 4, 3, 4}));
  });
}

TEST(Hand, AddAndGather) {
  ForEachKernel<AddOp>([&](const Kernel<AddOp>& kernel) {
    Floats x = {1, 2};
    Floats y = {10, 20};
    RunKernel(kernel, {View(x, {1, 2}), View(y, {1, 2})});
    EXPECT_EQ(y, (Floats{11, 22}));
  });
  ForEachKernel<GatherOp>([&](const Kernel<GatherOp>& kernel) {
    std::vector<uint16_t> table = {0x3f80, 0x4000, 0xbf80, 0x0000};  // {1, 2}, {−1, 0}
    const std::vector<int32_t> ids = {1, 0, 1};
    Floats y(6);
    RunKernel(kernel, {TensorView(table.data(), DType::kBF16, {2, 2}), ids, View(y, {3, 2})});
    EXPECT_EQ(y, (Floats{-1, 0, 1, 2, -1, 0}));
    RunKernel(kernel, {TensorView(table.data(), DType::kBF16, {2, 2}), ids, View(y, {3, 2}), 1.5f});
    EXPECT_EQ(y, (Floats{-1.5f, 0, 1.5f, 3, -1.5f, 0}));
    Floats same = {1, 2}, scaled(2);
    RunKernel(kernel, {View(same, {1, 2}), std::vector<int32_t>{0}, View(scaled, {1, 2}), -0.5f});
    EXPECT_EQ(scaled, (Floats{-0.5f, -1}));
    std::vector<uint16_t> copied(6);
    RunKernel(kernel, {TensorView(table.data(), DType::kBF16, {2, 2}), ids,
                       TensorView(copied.data(), DType::kBF16, {3, 2})});
    EXPECT_EQ(copied, (std::vector<uint16_t>{0xbf80, 0, 0x3f80, 0x4000, 0xbf80, 0}));
    std::vector<int8_t> codes = {-128, 127, 3, 4}, taken(2);
    const std::vector<int32_t> second = {1};
    RunKernel(kernel, {TensorView(codes.data(), DType::kI8, {2, 2}), second,
                       TensorView(taken.data(), DType::kI8, {1, 2})});
    EXPECT_EQ(taken, (std::vector<int8_t>{3, 4}));
  });
}

TEST(Hand, CastRoundsToNearestEven) {
  Floats x = {1.0f,
              1.0f + 0x1p-8f,             // a tie: down to the even 1
              1.0f + 0x1p-8f + 0x1p-20f,  // above it: up
              1.0f + 3 * 0x1p-8f,         // a tie: up to the even 1 + 2^−6
              -0.0f,
              kInf,
              std::numeric_limits<float>::max(),  // rounds to infinity
              0x1p-133f};                         // the smallest subnormal of bf16
  const std::vector<uint16_t> want = {0x3f80, 0x3f80, 0x3f81, 0x3f82,
                                      0x8000, 0x7f80, 0x7f80, 0x0001};
  ForEachKernel<CastOp>([&](const Kernel<CastOp>& kernel) {
    std::vector<uint16_t> y(8);
    RunKernel(kernel, {View(x, {8}), TensorView(y.data(), DType::kBF16, {8})});
    EXPECT_EQ(y, want);
    Floats nan = {std::bit_cast<float>(0x7f800001u)};  // its upper half alone would be infinity
    RunKernel(kernel, {View(nan, {1}), TensorView(y.data(), DType::kBF16, {1})});
    EXPECT_TRUE(std::isnan(BF16ToFloat(y[0])));
  });
}

TEST(Hand, CastToF16RoundsToNearestEvenAndOverflowsToInfinity) {
  Floats x = {1.0f + 0x1p-11f,             // a tie: down to the even 1
              1.0f + 0x1p-11f + 0x1p-20f,  // above it: up
              1.0f + 3 * 0x1p-11f,         // a tie: up to the even 1 + 2^−9
              65519.0f,                    // down to the largest
              -65520.0f,                   // a tie: up to infinity
              0x1p-24f,                    // the smallest subnormal
              0x1p-25f,                    // a tie: down to 0
              0x1.8p-25f};
  const std::vector<uint16_t> want = {0x3c00, 0x3c01, 0x3c02, 0x7bff,
                                      0xfc00, 0x0001, 0x0000, 0x0001};
  ForEachKernel<CastOp>([&](const Kernel<CastOp>& kernel) {
    std::vector<uint16_t> y(8);
    RunKernel(kernel, {View(x, {8}), TensorView(y.data(), DType::kF16, {8})});
    EXPECT_EQ(y, want);
    Floats nan = {std::bit_cast<float>(0x7f800001u)};
    RunKernel(kernel, {View(nan, {1}), TensorView(y.data(), DType::kF16, {1})});
    EXPECT_TRUE(std::isnan(F16ToFloat(y[0])));
  });
}

}  // namespace
}  // namespace latte::hand_pointwise_test
