// Matrices in blocks of GGUF files, whole and in part.
#include "src/checkpoint/formats/common/loaded_matrix.h"

#include <vector>

#include <gtest/gtest.h>

#include "src/tensor/dtype.h"

namespace latte::loaded_matrix_test {
namespace {

// [rows, columns] of a type of blocks. Bytes below 0x40 are no f16 that is not finite.
LoadedMatrix MatrixOf(DType dtype, int64_t rows, int64_t columns) {
  LoadedMatrix out;
  out.weight = out.Own(Tensor(dtype, {rows, columns / ValuesPerElement(dtype)}));
  const int64_t bytes = out.weight.elements() * SizeOf(dtype);
  for (int64_t i = 0; i < bytes; ++i) out.weight.data[i] = static_cast<std::byte>(i * 37 % 61);
  return out;
}

std::vector<float> RowOf(const LoadedMatrix& matrix, int64_t i) {
  std::vector<float> out(static_cast<size_t>(matrix.columns()));
  matrix.ReadRow(i, out.data());
  return out;
}

class LoadedBlocks : public ::testing::TestWithParam<DType> {};

TEST_P(LoadedBlocks, PartsHaveTheValuesOfTheWhole) {
  const DType dtype = GetParam();
  const int64_t values = ValuesPerElement(dtype);
  const LoadedMatrix whole = MatrixOf(dtype, 5, 4 * values);
  EXPECT_EQ(whole.rows(), 5);
  EXPECT_EQ(whole.columns(), 4 * values);
  EXPECT_EQ(whole.bytes(), 5 * 4 * SizeOf(dtype));
  EXPECT_FALSE(whole.is_integer());

  LoadedMatrix part = MatrixOf(dtype, 5, 4 * values);
  part.KeepRows(1, 4);
  ASSERT_EQ(part.ColumnUnit(), values);
  part.KeepColumns(part.ColumnUnit(), 3 * part.ColumnUnit());
  EXPECT_EQ(part.rows(), 3);
  EXPECT_EQ(part.columns(), 2 * values);
  EXPECT_EQ(part.bytes(), 3 * 2 * SizeOf(dtype));
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 2 * values; ++j)
      ASSERT_EQ(RowOf(part, i)[static_cast<size_t>(j)],
                LoadElement(whole.weight.RowBytes(1 + i), dtype, values + j));
}

TEST_P(LoadedBlocks, OtherRowsAreFreed) {
  const LoadedMatrix whole = MatrixOf(GetParam(), 5, 512);
  LoadedMatrix part = MatrixOf(GetParam(), 5, 512);
  part.KeepRows(2, 4);
  part.FreeOtherRows();
  EXPECT_EQ(part.owned.front().bytes(), part.bytes());
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(RowOf(part, i), RowOf(whole, 2 + i));
}

INSTANTIATE_TEST_SUITE_P(Types, LoadedBlocks,
                         ::testing::Values(DType::kQ8_0, DType::kQ4_K, DType::kQ6_K,
                                           DType::kIQ4_NL),
                         [](const auto& of) { return std::string(Name(of.param)); });

// A gate and the other weight: numbers with scales are in one format, others in any.
TEST(LoadedMatrix, PlainNumbersAndBlocksAreMultipliedTogether) {
  const LoadedMatrix q4 = MatrixOf(DType::kQ4_K, 2, 256);
  const LoadedMatrix q6 = MatrixOf(DType::kQ6_K, 2, 256);
  const auto numbers = [](DType dtype) {
    LoadedMatrix out;
    out.weight = out.Own(Tensor(dtype, {2, 256}));
    return out;
  };
  const LoadedMatrix bf16 = numbers(DType::kBF16);
  const LoadedMatrix f8 = numbers(DType::kF8E4M3);
  EXPECT_TRUE(q4.IsReadWith(q6));
  EXPECT_TRUE(q4.IsReadWith(bf16));
  EXPECT_TRUE(bf16.IsReadWith(q4));
  EXPECT_TRUE(bf16.IsReadWith(numbers(DType::kF32)));
  EXPECT_TRUE(f8.IsReadWith(f8));
  EXPECT_FALSE(f8.IsReadWith(bf16));
  EXPECT_FALSE(bf16.IsReadWith(f8));
  EXPECT_FALSE(q4.IsReadWith(f8));
  EXPECT_EQ(q4.FormatText(), "q4_k");
}

// Groups of integers with scales stay whole; plain numbers have no unit.
TEST(LoadedMatrix, PartsOfOtherTypesKeepTheirGroups) {
  LoadedMatrix u4;
  u4.weight = u4.Own(Tensor(DType::kU4, {2, 128}));
  u4.block_columns = 32;
  EXPECT_EQ(u4.ColumnUnit(), 32);
  u4.block_columns = 256;
  EXPECT_EQ(u4.ColumnUnit(), 2);
  LoadedMatrix plain;
  plain.weight = plain.Own(Tensor(DType::kBF16, {2, 256}));
  EXPECT_EQ(plain.ColumnUnit(), 1);
}

}  // namespace
}  // namespace latte::loaded_matrix_test
