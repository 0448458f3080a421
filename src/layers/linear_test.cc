#include "src/layers/linear.h"

#include <gtest/gtest.h>

#include "src/layers/mlp.h"
#include "src/layers/norm.h"

namespace latte::linear_test {
namespace {

// A step with nothing in it but scratch memory.
struct Scratch {
  Workspace workspace;
  ThreadPool threads{2};
  Machine machine = *Machine::Detect();
  StepContext step;
  explicit Scratch(DType arithmetic) {
    step.arithmetic = arithmetic;
    step.workspace = &workspace;
    step.exec = {&threads, &machine};
  }
};

Tensor Counting(int64_t rows, int64_t columns) {
  Tensor out(DType::kF32, {rows, columns});
  for (int64_t i = 0; i < rows * columns; ++i)
    out.Ptr<float>()[i] = static_cast<float>(i % 7) - 3.0f;
  return out;
}

TEST(Linear, SlicesOfRowsAndColumnsMakeTheWhole) {
  Scratch scratch(DType::kF32);
  const Tensor weight = Counting(6, 8);
  const Tensor x = Counting(3, 8);
  Tensor whole(DType::kF32, {3, 6});
  Linear linear;
  linear.matrix.weight = weight;
  MultiplyExactly(linear, x, whole, scratch.step);

  for (int64_t rank = 0; rank < 2; ++rank) {
    Linear part;
    part.matrix.weight = weight;
    part.matrix.KeepRows(rank * 3, rank * 3 + 3);
    Tensor y(DType::kF32, {3, 3});
    MultiplyExactly(part, x, y, scratch.step);
    for (int64_t m = 0; m < 3; ++m)
      for (int64_t n = 0; n < 3; ++n)
        EXPECT_EQ(y.view().Row<float>(m)[n], whole.view().Row<float>(m)[rank * 3 + n]);
  }

  Tensor sum(DType::kF32, {3, 6});
  for (int64_t rank = 0; rank < 2; ++rank) {
    Linear part;
    part.matrix.weight = weight;
    part.matrix.KeepColumns(rank * 4, rank * 4 + 4);
    Tensor y(DType::kF32, {3, 6});
    MultiplyExactly(part, x.view().Slice(1, rank * 4, rank * 4 + 4), y, scratch.step);
    for (int i = 0; i < 18; ++i) sum.Ptr<float>()[i] += y.Ptr<float>()[i];
  }
  for (int i = 0; i < 18; ++i) EXPECT_EQ(sum.Ptr<float>()[i], whole.Ptr<float>()[i]);
}

// Slices that begin inside a block still find their own scales.
TEST(Linear, SlicesOfAnFp8WeightUseTheScalesOfTheirPlace) {
  Scratch scratch(DType::kF32);
  Tensor codes(DType::kF8E4M3, {6, 8});
  for (int i = 0; i < 48; ++i) codes.Ptr<uint8_t>()[i] = static_cast<uint8_t>(0x30 + i % 16);
  Tensor scale(DType::kF32, {2, 2});
  for (int i = 0; i < 4; ++i) scale.Ptr<float>()[i] = static_cast<float>(1 << i);
  const auto whole_weight = [&] {
    Linear linear;
    linear.matrix = {.weight = codes, .scale = scale, .block_rows = 4, .block_columns = 5};
    return linear;
  };
  const Tensor x = Counting(2, 8);
  Tensor whole(DType::kF32, {2, 6});
  MultiplyExactly(whole_weight(), x, whole, scratch.step);
  Tensor sum(DType::kF32, {2, 6});
  for (int64_t rank = 0; rank < 2; ++rank) {
    Linear of_rows = whole_weight();
    of_rows.matrix.KeepRows(rank * 3, rank * 3 + 3);
    Tensor rows(DType::kF32, {2, 3});
    MultiplyExactly(of_rows, x, rows, scratch.step);
    for (int64_t m = 0; m < 2; ++m)
      for (int64_t n = 0; n < 3; ++n)
        EXPECT_EQ(rows.view().Row<float>(m)[n], whole.view().Row<float>(m)[rank * 3 + n]);
    Linear of_columns = whole_weight();
    of_columns.matrix.KeepColumns(rank * 4, rank * 4 + 4);
    Tensor part(DType::kF32, {2, 6});
    MultiplyExactly(of_columns, x.view().Slice(1, rank * 4, rank * 4 + 4), part, scratch.step);
    for (int i = 0; i < 12; ++i) sum.Ptr<float>()[i] += part.Ptr<float>()[i];
  }
  for (int i = 0; i < 12; ++i) EXPECT_EQ(sum.Ptr<float>()[i], whole.Ptr<float>()[i]);
}

TEST(Linear, NarrowArithmeticRoundsActivationsAndF32DoesNot) {
  for (const DType arithmetic : {DType::kF32, DType::kBF16, DType::kF16}) {
    Scratch scratch(arithmetic);
    Tensor x(DType::kF32, {1, 1});
    x.Ptr<float>()[0] = 1.0f + 0x1p-10f + 0x1p-12f;
    const TensorView rounded = RoundActivations(x, {}, scratch.step).plain;
    EXPECT_EQ(rounded.dtype, arithmetic);
    if (arithmetic == DType::kF16) {
      EXPECT_EQ(F16ToFloat(rounded.Ptr<uint16_t>()[0]), 1.0f + 0x1p-10f);
    } else if (arithmetic == DType::kBF16) {
      EXPECT_EQ(BF16ToFloat(rounded.Ptr<uint16_t>()[0]), 1.0f);
    } else {
      EXPECT_EQ(rounded.data, x.view().data);
    }
  }
}

// An int8 weight [2, 3] of ones and twos with scales 1 and 0.5 per row.
Linear Int8Weight() {
  Linear linear;
  Tensor codes(DType::kI8, {2, 3});
  Tensor scale(DType::kF32, {2, 1});
  for (int i = 0; i < 6; ++i) codes.Ptr<int8_t>()[i] = static_cast<int8_t>(1 + i / 3);
  scale.Ptr<float>()[0] = 1.0f;
  scale.Ptr<float>()[1] = 0.5f;
  LoadedMatrix& matrix = linear.matrix;
  matrix.weight = matrix.Own(std::move(codes));
  matrix.scale = matrix.Own(std::move(scale));
  matrix.block_rows = 1;
  matrix.block_columns = 3;
  return linear;
}

TEST(Linear, Int8WeightsTakeInt8ActivationsUnlessToldOtherwise) {
  const Linear int8 = Int8Weight();
  Linear plain;
  const Tensor weight = Counting(2, 3);
  plain.matrix.weight = weight;
  const Tensor x = Counting(1, 3);
  for (const auto& [arithmetic, allowed, wants] : {std::tuple{DType::kBF16, true, true},
                                                   {DType::kBF16, false, false},
                                                   {DType::kF32, true, false}}) {
    Scratch scratch(arithmetic);
    scratch.step.int8_activations = allowed;
    const Activations one = RoundActivations(x, {&int8}, scratch.step);
    EXPECT_EQ(one.codes.empty(), !wants);
    EXPECT_EQ(one.plain.empty(), wants);
    const Activations both = RoundActivations(x, {&int8, &plain}, scratch.step);
    EXPECT_EQ(both.codes.empty(), !wants);
    EXPECT_FALSE(both.plain.empty());
    EXPECT_TRUE(RoundActivations(x, {&plain}, scratch.step).codes.empty());
  }
}

TEST(Linear, ProductsOfDifferentFormatsSideBySideGiveWhatEachGivesAlone) {
  Scratch scratch(DType::kBF16);
  const Linear int8 = Int8Weight();
  Linear plain;
  const Tensor weight = Counting(2, 3);
  plain.matrix.weight = weight;
  const Tensor x = Counting(4, 3);
  const Activations rounded = RoundActivations(x, {&int8, &plain}, scratch.step);
  Tensor alone[3], together[3];
  std::vector<Product> products;
  const Linear* linears[] = {&int8, &plain, &int8};
  for (size_t i = 0; i < 3; ++i) {
    alone[i] = Tensor(DType::kF32, {4, 2});
    together[i] = Tensor(DType::kF32, {4, 2});
    Multiply(*linears[i], rounded, alone[i], scratch.step);
    products.push_back({linears[i], nullptr, rounded, together[i]});
  }
  Multiply(products, scratch.step);
  for (size_t i = 0; i < 3; ++i)
    for (int j = 0; j < 8; ++j) EXPECT_EQ(together[i].Ptr<float>()[j], alone[i].Ptr<float>()[j]);
  // −3 − 2 − 1, by ones and by halves of twos.
  EXPECT_NEAR(alone[0].Ptr<float>()[0], -6, 0.05);
  EXPECT_NEAR(alone[0].Ptr<float>()[1], -6, 0.05);
}

TEST(Linear, ApplyGivesWhatRoundingAndMultiplyingGive) {
  const Tensor x = Counting(4, 3);
  const Tensor weight = Counting(2, 3);
  Linear plain;
  plain.matrix.weight = weight;
  const Linear int8 = Int8Weight();
  for (const DType arithmetic : {DType::kF32, DType::kBF16})
    for (const Linear* linear : {&int8, &std::as_const(plain)}) {
      Scratch scratch(arithmetic);
      Tensor expected(DType::kF32, {4, 2}), found(DType::kF32, {4, 2});
      Multiply(*linear, RoundActivations(x, {linear}, scratch.step), expected, scratch.step);
      Apply(*linear, x, found, scratch.step);
      for (int i = 0; i < 8; ++i) EXPECT_EQ(found.Ptr<float>()[i], expected.Ptr<float>()[i]);
    }
}

// y = down·(silu(gate·x) ⊙ up·x), by hand.
TEST(Mlp, GatesWhatGoesUp) {
  Scratch scratch(DType::kF32);
  Tensor one(DType::kF32, {1, 1}), two(DType::kF32, {1, 1}), x(DType::kF32, {1, 1}),
      y(DType::kF32, {1, 1});
  one.Ptr<float>()[0] = 1;
  two.Ptr<float>()[0] = 2;
  x.Ptr<float>()[0] = 3;
  Mlp mlp;
  mlp.gate.matrix.weight = one;
  mlp.up.matrix.weight = two;
  mlp.down.matrix.weight = two;
  Forward(mlp, x, y, scratch.step);
  EXPECT_NEAR(y.Ptr<float>()[0], 2 * (3 / (1 + std::exp(-3.0))) * 6, 1e-5);
}

TEST(RmsNorm, UnitRootMeanSquareTimesWeight) {
  Scratch scratch(DType::kF32);
  Tensor x(DType::kF32, {1, 2});
  x.Ptr<float>()[0] = 3.0f;
  x.Ptr<float>()[1] = 4.0f;
  Tensor weight(DType::kF32, {2});
  weight.Ptr<float>()[0] = 2.0f;
  weight.Ptr<float>()[1] = 1.0f;
  Normalize({weight, 0.0}, x, x, scratch.step);
  EXPECT_NEAR(x.Ptr<float>()[0], 2 * 3 / std::sqrt(12.5), 1e-6);
  EXPECT_NEAR(x.Ptr<float>()[1], 4 / std::sqrt(12.5), 1e-6);
}

}  // namespace
}  // namespace latte::linear_test
