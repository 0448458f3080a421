// gemm and gemm_t with quantised weights and activations, groups of products and gates, against the
// reference: values, bits, and memory that must not be touched.
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/conformance/support/compare.h"
#include "tests/conformance/support/cuts.h"
#include "tests/conformance/support/quant_case.h"
#include "tests/conformance/support/run_kernels.h"
#include "tests/conformance/support/tolerance.h"

namespace latte::gemm_quant_test {
namespace {

TEST(LinearQuantConformance, ReferenceWithinRoundingAndSameBitsHoweverCut) {
  std::mt19937 rng(4);
  for (const auto& [s, blocks] : QuantCases(kQuantShapes))
    for (const DType w_type : kWeightTypes)
      for (const DType x_type : kInputTypes) {
        SCOPED_TRACE(fmt::format("B={} M={} N={} K={} {}·{} blocks {}×{} from {},{} of {}", s.b,
                                 s.m, s.n, s.k, Name(x_type), Name(w_type), blocks.rows,
                                 blocks.columns, blocks.row_begin, blocks.column_begin,
                                 Name(blocks.scale)));
        const QuantWeight w(w_type, s.b, s.n, s.k, blocks, rng);
        const QuantInput x(x_type, s.b, s.m, s.k, (s.m + s.n) % 3 == 0 ? 32 : 128, rng);
        const Guarded bias(DType::kF32, {s.n});
        FillRandom(bias, rng);
        Guarded y(DType::kF32, {s.b, s.m, s.n}, kQuantPad);
        GemmProblem p = PartOf(x, w, y);
        if (s.k % 3 != 0) p.bias = bias;
        Tensor want(DType::kF32, {s.b, s.m, s.n});
        Tensor sums(DType::kF32, {s.b, s.m, s.n});
        GemmProblem to_want = p;
        to_want.y = want;
        RunRefPart(to_want);
        RunRefPart({x.magnitude, w.magnitude, TensorView(), sums});
        ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
          y.Poison();
          RunPart(kernel, p);
          ASSERT_TRUE(Close(y, want, [&](int64_t b, int64_t m, int64_t n) {
            return QuantBound(s.k, static_cast<double>(GetValue(sums, b, m, n)) + 1.0);
          }));
          if (s.m == 0) return;
          Tensor first(DType::kF32, {s.b, s.m, s.n});
          GemmProblem to_first = p;
          to_first.y = first;
          RunPart(kernel, to_first);
          ExpectSameBitsHoweverCut(kernel, p, y, first);
        });
        if (HasFatalFailure()) return;
      }
}

// Every format of checkpoints has a fast kernel: none is left to the reference.
TEST(LinearQuantConformance, FastRowsTakeEveryFormatOfCheckpoints) {
  for (const DType w : kWeightTypes)
    for (const DType x : kInputTypes)
      for (const int64_t run : {32, 64, 128, 7168})
        for (const Kernel<GemmOp>& kernel : Kernels<GemmOp>()) {
          if (!kernel.name.ends_with(".gemm_f32")) continue;
          EXPECT_TRUE(kernel.supports({1, 1, 8, 7168, x, w, x == DType::kI8 ? 128 : 0, run}));
        }
}

// The tile kernels take every 8-bit product for activations with groups of 128.
TEST(LinearQuantConformance, TilesTakeBytes) {
  const auto takes = [](std::string_view name, const GemmOp::Shape& shape) {
    const auto row = std::ranges::find(Kernels<GemmOp>(), name, &Kernel<GemmOp>::name);
    return row != Kernels<GemmOp>().end() && row->supports(shape);
  };
  for (const DType w : {DType::kI8, DType::kU4})
    for (const int64_t run : {128, 256, 7168})
      EXPECT_TRUE(takes("amx.gemm_s8", {1, 1, 8, 7168, DType::kI8, w, 128, run}));
  EXPECT_TRUE(takes("amx.gemm_s8", {1, 1, 8, 7168, DType::kI8, DType::kU4, 128, 32}));
  EXPECT_FALSE(takes("amx.gemm_s8", {1, 1, 8, 7168, DType::kI8, DType::kI8, 128, 64}));
  EXPECT_FALSE(takes("amx.gemm_s8", {1, 1, 8, 7168, DType::kI8, DType::kU4, 32, 32}));
  EXPECT_TRUE(takes("amx.gemm_bf16", {1, 1, 8, 7168, DType::kBF16, DType::kI8, 0, 7168}));
  EXPECT_FALSE(takes("amx.gemm_bf16", {1, 1, 8, 7168, DType::kBF16, DType::kI8, 0, 48}));
  EXPECT_FALSE(takes("amx.gemm_bf16", {1, 1, 8, 7168, DType::kBF16, DType::kU4, 0, 32}));
}

TEST(LinearQuantConformance, NanCodesOfF8ReachTheirOutputsOnly) {
  for (const DType type : {DType::kF8E4M3, DType::kF8E4M3Fnuz})
    for (const DType x_type : {DType::kF32, DType::kBF16}) {
      Tensor codes(type, {1, 3, 70});
      std::fill_n(codes.Ptr<uint8_t>(), 3 * 70, uint8_t{0x38});
      codes.Ptr<uint8_t>()[70 + 41] = type == DType::kF8E4M3 ? 0xff : 0x80;
      Tensor x(x_type, {1, 1, 70});
      Tensor y(DType::kF32, {1, 1, 3});
      const GemmProblem p{x, codes, TensorView(), y};
      ForEachKernelFor<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
        RunPart(kernel, p);
        EXPECT_EQ(y.Ptr<float>()[0], 0.0f);
        EXPECT_TRUE(std::isnan(y.Ptr<float>()[1]));
        EXPECT_EQ(y.Ptr<float>()[2], 0.0f);
      });
    }
}

TEST(LinearQuantConformance, GatesAreMultiplied) {
  std::mt19937 rng(5);
  for (const QuantShape& s : {QuantShape{1, 1, 33, 130}, {1, 7, 70, 256}, {2, 200, 90, 64}})
    for (const DType w_type : {DType::kF8E4M3, DType::kI8, DType::kU4})
      for (const DType x_type : kInputTypes) {
        const QuantWeight w(w_type, s.b, s.n, s.k, kQuantBlocks[4], rng);
        const QuantWeight g(w_type, s.b, s.n, s.k, kQuantBlocks[4], rng);
        const QuantInput x(x_type, s.b, s.m, s.k, 128, rng);
        Guarded y(DType::kF32, {s.b, s.m, s.n}, kQuantPad);
        const Tensor want(DType::kF32, {s.b, s.m, s.n});
        const Tensor up(DType::kF32, {s.b, s.m, s.n});
        const Tensor up_sums(DType::kF32, {s.b, s.m, s.n});
        const Tensor gate_sums(DType::kF32, {s.b, s.m, s.n});
        GemmProblem p = PartOf(x, w, want);
        p.gate = g.codes;
        p.gate_scale = g.grid;
        RunRefPart(p);
        RunRefPart(PartOf(x, w, up));
        RunRefPart({x.magnitude, w.magnitude, TensorView(), up_sums});
        RunRefPart({x.magnitude, g.magnitude, TensorView(), gate_sums});
        p.y = y;
        ForEachFastKernel<GemmOp>(GemmOp::ShapeOf(p), [&](const Kernel<GemmOp>& kernel) {
          y.Poison();
          RunPart(kernel, p);
          ASSERT_TRUE(Close(y, want, [&](int64_t b, int64_t m, int64_t n) {
            const auto of = [&](const Tensor& t) {
              return static_cast<double>(GetValue(t, b, m, n));
            };
            const double gate_error = QuantBound(s.k, of(gate_sums) + 1);
            const double up_error = QuantBound(s.k, of(up_sums) + 1);
            return GateBound(gate_error, up_error, of(gate_sums), of(up), of(want));
          }));
          Tensor first(DType::kF32, {s.b, s.m, s.n});
          GemmProblem to_first = p;
          to_first.y = first;
          RunPart(kernel, to_first);
          ExpectSameBitsHoweverCut(kernel, p, y, first);
        });
        if (HasFatalFailure()) return;
      }
}

// More parts than one ParallelFor takes, of very different sizes, like experts with skewed routing.
TEST(LinearQuantConformance, PartsOfAGroupGiveTheBitsThatTheyGiveAlone) {
  std::mt19937 rng(6);
  for (const DType w_type : {DType::kF8E4M3, DType::kU4})
    for (const DType x_type : {DType::kBF16, DType::kI8}) {
      std::vector<std::unique_ptr<QuantWeight>> weights;
      std::vector<std::unique_ptr<QuantInput>> inputs;
      std::vector<Tensor> alone, together;
      std::vector<GemmProblem> parts;
      for (int64_t i = 0; i < 300; ++i) {
        const int64_t n = 1 + i * 7 % 40;
        const int64_t m = i == 17 ? 250 : i % 4;
        weights.push_back(std::make_unique<QuantWeight>(w_type, 1, n, 96, kQuantBlocks[4], rng));
        inputs.push_back(std::make_unique<QuantInput>(x_type, 1, m, 96, 32, rng));
        alone.emplace_back(DType::kF32, std::initializer_list<int64_t>{1, m, n});
        together.emplace_back(DType::kF32, std::initializer_list<int64_t>{1, m, n});
        parts.push_back(PartOf(*inputs.back(), *weights.back(), alone.back()));
      }
      ForEachKernel<GemmOp>([&](const Kernel<GemmOp>& kernel) {
        if (!SupportsAll(kernel, parts)) return;
        for (GemmProblem& p : parts) RunPart(kernel, p);
        for (const int threads : ThreadCounts(kernel)) {
          std::vector<GemmProblem> group = parts;
          for (size_t i = 0; i < group.size(); ++i) {
            group[i].y = together[i];
            std::fill_n(together[i].Ptr<float>(), group[i].y.elements(), -7.0f);
          }
          RunKernel<GemmOp>(kernel, {group}, threads);
          for (size_t i = 0; i < group.size(); ++i)
            ASSERT_TRUE(SameBits(together[i], alone[i])) << "part " << i;
        }
      });
    }
}

// The additional error of fixed-point kernels: each product of x and a scale is off by up to `step`
// of the largest in its scale group.
double FixedPointBound(double step, const QuantInput& x, const QuantWeight& w, int64_t b, int64_t m,
                       int64_t column) {
  const BlockScale& grid = w.grid;
  double largest = 0, codes = 0;
  for (int64_t i = 0; i < w.magnitude.view().shape[1]; ++i) {
    const int64_t row = (grid.row_begin + b * grid.batch_rows + i) / grid.rows;
    const auto scale =
        static_cast<double>(GetValue(grid.scale, row, (grid.column_begin + column) / grid.columns));
    largest =
        std::max(largest, std::abs(scale * static_cast<double>(GetValue(x.magnitude, b, m, i))));
    if (scale != 0)
      codes += std::abs(static_cast<double>(GetValue(w.magnitude, b, i, column)) / scale);
  }
  return step * largest * codes;
}

// Also covers batches that a task computes together, with a smaller last batch, more columns than a
// task takes at once, and whole registers of 4-bit values.
TEST(LinearTQuantConformance, ReferenceWithinRoundingAndSameBitsHoweverCut) {
  std::mt19937 rng(7);
  std::vector<QuantShape> shapes(std::begin(kQuantShapes), std::end(kQuantShapes));
  shapes.insert(shapes.end(), {{19, 1, 130, 40}, {5, 3, 70, 140}, {1, 2, 1200, 33}});
  shapes.insert(shapes.end(),
                {{19, 1, 128, 40}, {2, 3, 640, 300}, {3, 6, 512, 77}, {1, 70, 256, 64}});
  for (const auto& [shape, blocks] : QuantCases(shapes)) {
    const auto [b, m, k, n] = shape;
    for (const DType w_type : kWeightTypes)
      for (const DType x_type : {DType::kF32, DType::kBF16, DType::kF16}) {
        SCOPED_TRACE(fmt::format("B={} M={} N={} K={} {}·{} blocks {}×{}", b, m, n, k, Name(x_type),
                                 Name(w_type), blocks.rows, blocks.columns));
        const QuantWeight w(w_type, b, n, k, blocks, rng);
        const QuantInput x(x_type, b, m, n, 128, rng);
        Guarded y(DType::kF32, {b, m, k}, kQuantPad);
        const GemmTOp::Params p{x.x, w.codes, y, w.grid};
        Tensor want(DType::kF32, {b, m, k});
        Tensor sums(DType::kF32, {b, m, k});
        RunRef<GemmTOp>({x.x, w.codes, want, w.grid});
        RunRef<GemmTOp>({x.magnitude, w.magnitude, sums});
        ForEachFastKernel<GemmTOp>(GemmTOp::ShapeOf(p), [&, terms = n](const auto& kernel) {
          y.Poison();
          RunKernel<GemmTOp>(kernel, p);
          const bool fixed_point = kernel.isa == x86::kAvx512Vnni;
          // gemm_t_w4_vnni-inl.h; gemm_t_w8_vnni-inl.h, where the largest value may become the
          // largest integer, which is 1.00002 · 2^−15 of it less.
          const double step = w_type == DType::kU4 ? 0x1p-22 : 0x1.001p-15;
          ASSERT_TRUE(Close(y, want, [&](int64_t i, int64_t j, int64_t l) {
            return QuantBound(terms, static_cast<double>(GetValue(sums, i, j, l))) +
                   (fixed_point ? FixedPointBound(step, x, w, i, j, l) : 0);
          }));
          ASSERT_TRUE(y.PaddingIsPoison());
          const std::vector<std::byte> first = y.Bytes();
          for (const int threads : ThreadCounts(kernel)) {
            y.Poison();
            RunKernel<GemmTOp>(kernel, p, threads);
            ASSERT_EQ(y.Bytes(), first);
            for (const Uarch uarch : UarchsOf(kernel)) {
              y.Poison();
              RunKernelAs<GemmTOp>(uarch, kernel, p, threads);  // one product at a time, or several
              ASSERT_EQ(y.Bytes(), first) << Name(uarch);
            }
          }
        });
        if (HasFatalFailure()) return;
      }
  }
}

TEST(Hand, QuantizeRows) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x = {127, -63.5f, 0.5f, 1.5f, 2.5f, 0, 0, 0, 0, 0, 1, inf, 0, 0, 0};
  std::vector<int8_t> codes(15);
  std::vector<float> scale(3);
  ForEachKernel<QuantizeRowsOp>([&](const Kernel<QuantizeRowsOp>& kernel) {
    RunKernel<QuantizeRowsOp>(kernel, {TensorView(x.data(), DType::kF32, {1, 15}),
                                       TensorView(codes.data(), DType::kI8, {1, 15}),
                                       TensorView(scale.data(), DType::kF32, {1, 3}), 5});
    EXPECT_EQ(std::vector<int8_t>(codes.begin(), codes.begin() + 10),
              (std::vector<int8_t>{127, -64, 0, 2, 2, 0, 0, 0, 0, 0}));
    EXPECT_EQ(scale[0], 1.0f);
    EXPECT_EQ(scale[1], 0.0f);
    EXPECT_TRUE(std::isnan(scale[2]));
  });
}

TEST(QuantizeRowsConformance, WithinHalfAStep) {
  std::mt19937 rng(8);
  for (const int64_t k : {1, 31, 128, 129, 1000}) {
    const Guarded x(DType::kF32, {7, k}, 3);
    Guarded codes(DType::kI8, {7, k}, 5);
    Guarded scale(DType::kF32, {7, CeilDiv(k, 128)}, 1);
    FillRandom(x, rng);
    ForEachKernel<QuantizeRowsOp>([&](const Kernel<QuantizeRowsOp>& kernel) {
      for (const int threads : {1, 2}) {
        codes.Poison();
        scale.Poison();
        RunKernel<QuantizeRowsOp>(kernel, {x, codes, scale, 128}, threads);
        ASSERT_TRUE(codes.PaddingIsPoison());
        ASSERT_TRUE(Close(x, x, [](int64_t, int64_t, int64_t) { return 0.0; }));
        for (int64_t i = 0; i < 7; ++i)
          for (int64_t j = 0; j < k; ++j) {
            const double step = static_cast<double>(GetValue(scale, i, j / 128));
            const double meant = static_cast<double>(GetValue(codes, i, j)) * step;
            ASSERT_NEAR(meant, static_cast<double>(GetValue(x, i, j)),
                        step * (0.5 + 127 * Gamma(4)));
          }
      }
    });
  }
}

// A third of the rows has one special number, a third numbers so small that their scales are
// subnormal.
void ExpectQuantizedAsByReference(int64_t rows, int64_t k, int64_t group, float special,
                                  std::mt19937& rng) {
  SCOPED_TRACE(fmt::format("M={} K={} groups of {}, {}", rows, k, group, special));
  const int64_t groups = CeilDiv(k, group);
  const Guarded x(DType::kF32, {rows, k}, 3);
  FillRandom(x, rng);
  for (int64_t i = 0; i < rows; i += 3) x.view().Row<float>(i)[i * 7 % k] = special;
  for (int64_t i = 1; i < rows; i += 3)
    for (int64_t j = 0; j < k; ++j) x.view().Row<float>(i)[j] *= 0x1p-120f;
  Guarded codes(DType::kI8, {rows, k}, 5);
  Guarded scale(DType::kF32, {rows, groups}, 1);
  const Tensor want(DType::kI8, {rows, k});
  const Tensor want_scale(DType::kF32, {rows, groups});
  RunRef<QuantizeRowsOp>({x, want, want_scale, group});
  ForEachKernel<QuantizeRowsOp>([&](const Kernel<QuantizeRowsOp>& kernel) {
    for (const int threads : ThreadCounts(kernel)) {
      codes.Poison();
      scale.Poison();
      RunKernel<QuantizeRowsOp>(kernel, {x, codes, scale, group}, threads);
      ASSERT_TRUE(codes.PaddingIsPoison());
      ASSERT_TRUE(scale.PaddingIsPoison());
      for (int64_t i = 0; i < rows; ++i) {
        ASSERT_EQ(std::memcmp(codes.view().Row<int8_t>(i), want.view().Row<int8_t>(i),
                              static_cast<size_t>(k)),
                  0);
        for (int64_t j = 0; j < groups; ++j)
          ASSERT_EQ(std::bit_cast<uint32_t>(scale.view().Row<float>(i)[j]),
                    std::bit_cast<uint32_t>(want_scale.view().Row<float>(i)[j]));
      }
    }
  });
}

constexpr float kSpecials[] = {1.0f,
                               0x1p-119f,
                               0x1p-120f,
                               0x1p-149f,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};

TEST(QuantizeRowsConformance, BytesOfTheReferenceInFewRows) {
  std::mt19937 rng(10);
  for (const float special : kSpecials)
    for (const int64_t group : {5, 33, 128}) {
      ExpectQuantizedAsByReference(5, 130, group, special, rng);
      if (HasFatalFailure()) return;
    }
}

// Rows with every kind of number; groups that do not fill a vector.
TEST(QuantizeRowsConformance, BytesOfTheReference) {
  std::mt19937 rng(9);
  for (const int64_t group : {1, 5, 16, 33, 128})
    for (const int64_t k : {1, 15, 128, 130, 1000})
      for (const float special : kSpecials) {
        ExpectQuantizedAsByReference(40, k, group, special, rng);
        if (HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace latte::gemm_quant_test
