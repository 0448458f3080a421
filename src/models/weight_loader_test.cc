// Every format that a checkpoint may have, whole and cut as ranks will cut it.
#include "src/models/weight_loader.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/formats/formats.h"
#include "src/tensor/dtype.h"
#include "tests/support/parameter_name.h"

namespace latte::weight_loader_test {
namespace {

constexpr int64_t kRows = 12;
constexpr int64_t kColumns = 20;
constexpr int64_t kStack = 3;
const QuantConfig kQuant = {
    {{.format = &kFp8Weights, .block_rows = 5, .block_columns = 7}}};  // none divides

struct Format {
  const char* value;
  const char* scale;  // of the blocks; null: the values stand for themselves

  friend void PrintTo(const Format& format, std::ostream* out) {
    *out << format.value << " " << (format.scale ? format.scale : "plain");
  }
};
constexpr Format kFormats[] = {
    {"F32", nullptr},       {"F16", nullptr},       {"BF16", nullptr},
    {"F8_E4M3", "F32"},     {"F8_E4M3", "BF16"},    {"F8_E4M3", "F16"},
    {"F8_E4M3", "F8_E8M0"}, {"F8_E4M3FNUZ", "F32"}, {"F8_E4M3FNUZ", "BF16"}};

int64_t BytesEach(const std::string& dtype) {
  return dtype == "F32" ? 4 : dtype == "F16" || dtype == "BF16" ? 2 : 1;
}

// `count` codes of `dtype` whose values are small, different and finite.
std::string Codes(const std::string& dtype, int64_t count, uint32_t seed) {
  std::string out;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t mix = (seed + static_cast<uint32_t>(i) * 2654435761u) >> 7;
    uint32_t code = 0;
    if (dtype == "F32") code = 0x3f000000u + ((mix & 0xffff) << 7);
    if (dtype == "F16") code = 0x3800u + (mix & 0x3ff);
    if (dtype == "BF16") code = 0x3f00u + (mix & 0x7f);
    if (dtype == "F8_E8M0") code = 124 + mix % 6;
    if (dtype.starts_with("F8_E4M3")) code = 0x28 + mix % 32;
    const bool negative = dtype != "F8_E8M0" && seed % 2 == 0 && (mix & 0x40000) != 0;
    if (negative) code |= 1u << (8 * BytesEach(dtype) - 1);
    out.append(reinterpret_cast<const char*>(&code), static_cast<size_t>(BytesEach(dtype)));
  }
  return out;
}

class WeightLoaderTest : public testing::TestWithParam<Format> {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(testing::TempDir()) / fmt::format("latte_loader_{}", getpid());
    std::filesystem::create_directories(dir_);
    const Format format = GetParam();
    Add("w.weight", format.value, {kRows, kColumns}, 2);
    Add("s.gate_up_proj", format.value, {kStack, kRows, kColumns}, 4);
    if (format.scale != nullptr) {
      Add("w.weight_scale_inv", format.scale, {3, 3}, 1);
      Add("s.gate_up_proj_scale_inv", format.scale, {kStack, 3, 3}, 3);
    }
    Add("w.bias", "BF16", {7}, 5);
    const uint64_t size = header_.size() + 1;
    std::ofstream file(dir_ / "model.safetensors", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), 8);
    file << header_ << "}" << data_;
    file.close();
    auto opened = Checkpoint::Open(dir_);
    ASSERT_TRUE(opened) << ToString(opened.error());
    checkpoint_ = std::move(*opened);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void Add(const char* name, const std::string& dtype, const std::vector<int64_t>& shape,
           uint32_t seed) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    const size_t begin = data_.size();
    data_ += Codes(dtype, count, seed);
    header_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                           header_.empty() ? "{" : ",", name, dtype, ShapeString(shape), begin,
                           data_.size());
  }

  // x·Wᵀ of three fixed rows; x is cut as the columns of the weight are.
  Tensor Product(const Linear& linear, int64_t column_begin) {
    Tensor x(DType::kF32, {3, linear.inputs()});
    for (int64_t m = 0; m < 3; ++m)
      for (int64_t k = 0; k < linear.inputs(); ++k)
        x.view().Row<float>(m)[k] =
            static_cast<float>((m + 2) * ((column_begin + k) * 37 % 23) - 20) / 16.0f;
    Tensor y(DType::kF32, {3, linear.outputs()});
    MultiplyExactly(linear, x, y, step_);
    return y;
  }
  Tensor Product(const Result<Linear>& linear, int64_t column_begin = 0) {
    if (!linear) ADD_FAILURE() << ToString(linear.error());
    return linear ? Product(*linear, column_begin) : Tensor(DType::kF32, {3, kRows});
  }

  Result<Linear> Whole(const WeightSlice& slice = {}) const {
    return WeightLoader(checkpoint_, kQuant).Matrix("w.weight", kRows, kColumns, slice);
  }
  // Six rows of matrix `index` of the stack, from `row_begin` on.
  Result<Linear> Half(int64_t index, int64_t row_begin, const WeightSlice& slice = {}) const {
    return WeightLoader(checkpoint_, kQuant)
        .FromStack({"s.gate_up_proj", kStack, kRows, kColumns, index, row_begin, 6}, slice);
  }

  void ExpectRowsMakeTheWhole(const auto& load, int64_t rows) {
    const Tensor whole = Product(load(WeightSlice{}));
    for (const int64_t count : {2, 3})
      for (int64_t i = 0; i < count; ++i) {
        const Tensor part = Product(load(WeightSlice{i, count, WeightSlice::Along::kRows}));
        const int64_t each = rows / count;
        for (int64_t m = 0; m < 3; ++m)
          EXPECT_EQ(std::memcmp(part.view().Row<float>(m), whole.view().Row<float>(m) + i * each,
                                static_cast<size_t>(each) * sizeof(float)),
                    0)
              << "part " << i << " of " << count << ", row " << m;
      }
  }

  void ExpectColumnsSumToTheWhole(const auto& load, int64_t rows) {
    const Tensor whole = Product(load(WeightSlice{}));
    for (const int64_t count : {2, 4, 5}) {
      std::vector<float> sum(static_cast<size_t>(3 * rows), 0.0f);
      for (int64_t i = 0; i < count; ++i) {
        const Tensor part = Product(load(WeightSlice{i, count, WeightSlice::Along::kColumns}),
                                    i * (kColumns / count));
        for (size_t j = 0; j < sum.size(); ++j) sum[j] += part.Ptr<float>()[j];
      }
      // Another order of 20 additions: 20 roundings of partial sums below 2^9 at most.
      for (size_t j = 0; j < sum.size(); ++j)
        EXPECT_NEAR(sum[j], whole.Ptr<float>()[j], 20 * std::ldexp(1.0, 9 - 24)) << count;
    }
  }

  std::filesystem::path dir_;
  std::string header_;
  std::string data_;
  Checkpoint checkpoint_;
  Workspace workspace_;
  ThreadPool threads_{2};
  Machine machine_ = *Machine::Detect();
  StepContext step_ = {
      .arithmetic = DType::kF32, .workspace = &workspace_, .exec = {&threads_, &machine_}};
};

TEST_P(WeightLoaderTest, PartsOfAVectorMakeTheWhole) {
  const WeightLoader load(checkpoint_, kQuant);
  const Result<Tensor> whole = load.FloatVector("w.bias", 7);
  ASSERT_TRUE(whole) << ToString(whole.error());
  std::vector<float> parts;
  for (int64_t i = 0; i < 3; ++i) {
    const Result<Tensor> part = load.FloatVector("w.bias", 7, {i, 3});
    ASSERT_TRUE(part) << ToString(part.error());
    parts.insert(parts.end(), part->Ptr<float>(), part->Ptr<float>() + part->view().elements());
  }
  ASSERT_EQ(parts.size(), 7U);
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i], whole->Ptr<float>()[i]) << i;
}

TEST_P(WeightLoaderTest, BytesAreThoseOfTheShareAndCountOnce) {
  const auto bytes_of = [&](const WeightSlice& slice, int64_t* scale) {
    LoadedBytes bytes;
    const WeightLoader load(checkpoint_, kQuant, nullptr, nullptr, &bytes);
    for (int time = 0; time < 2; ++time) {
      const Result<Linear> linear = load.Matrix("w.weight", kRows, kColumns, slice);
      EXPECT_TRUE(linear && load.Vector("w.bias", 7));
      if (linear) *scale = linear->matrix.scale.empty() ? 0 : SizeOf(linear->matrix.scale.dtype);
    }
    return bytes.total();
  };
  const int64_t each = BytesEach(GetParam().value);
  int64_t scale = 0;
  const int64_t whole = bytes_of({}, &scale);
  EXPECT_EQ(whole, kRows * kColumns * each + 9 * scale + 7 * 2);
  // Rows 4 to 7 touch two of the three rows of blocks.
  const int64_t part = bytes_of({1, 3, WeightSlice::Along::kRows}, &scale);
  EXPECT_EQ(part, kRows / 3 * kColumns * each + 6 * scale + 7 * 2);
}

TEST_P(WeightLoaderTest, RowsOfRanksMakeTheWhole) {
  ExpectRowsMakeTheWhole([&](const WeightSlice& slice) { return Whole(slice); }, kRows);
}

TEST_P(WeightLoaderTest, ColumnsOfRanksSumToTheWhole) {
  ExpectColumnsSumToTheWhole([&](const WeightSlice& slice) { return Whole(slice); }, kRows);
}

TEST_P(WeightLoaderTest, PartsOfAStackAreCutAlike) {
  for (int64_t e = 0; e < kStack; ++e)
    for (const int64_t row_begin : {0, 6}) {
      const auto load = [&](const WeightSlice& slice) { return Half(e, row_begin, slice); };
      ExpectRowsMakeTheWhole(load, 6);
      ExpectColumnsSumToTheWhole(load, 6);
    }
}

// The value of element (row, column) of a weight, scale included, by the definition.
float Value(const LoadedMatrix& matrix, int64_t row, int64_t column, int64_t scale_row,
            int64_t scale_column) {
  const float scale =
      matrix.scale.empty() ? 1.0f : matrix.scale.Row<float>(scale_row)[scale_column];
  return LoadElement(matrix.weight.data, matrix.weight.dtype,
                     row * matrix.weight.stride[0] + column) *
         scale;
}

TEST_P(WeightLoaderTest, StacksHoldTheirMatricesOneAfterTheOther) {
  for (int64_t e = 0; e < kStack; ++e) {
    const Result<Linear> up = Half(e, 6);
    ASSERT_TRUE(up) << ToString(up.error());
    const Tensor y = Product(up);
    for (int64_t n = 0; n < 6; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < kColumns; ++k)
        sum += static_cast<double>(Value(up->matrix, n, k, (6 + n) / 5, k / 7)) *
               (static_cast<double>(2 * (k * 37 % 23) - 20) / 16.0);
      EXPECT_NEAR(y.Ptr<float>()[n], sum, 20 * std::ldexp(1.0, 9 - 24)) << "matrix " << e;
    }
    const int64_t bytes = kRows * kColumns * BytesEach(GetParam().value);
    const int64_t skipped = kRows * kColumns * BytesEach(GetParam().value) + e * bytes + bytes / 2;
    EXPECT_EQ(
        std::memcmp(up->matrix.weight.data, data_.data() + skipped, static_cast<size_t>(bytes / 2)),
        0);
  }
}

TEST_P(WeightLoaderTest, StacksHoldTheScalesOfEachMatrix) {
  const Format format = GetParam();
  if (format.scale == nullptr) {
    EXPECT_TRUE(Half(1, 0)->matrix.scale.empty());
    return;
  }
  const std::string scale_dtype = format.scale;
  const int64_t each = BytesEach(scale_dtype);
  const int64_t before = (1 + kStack) * kRows * kColumns * BytesEach(format.value) + 9 * each;
  for (int64_t e = 0; e < kStack; ++e) {
    const Result<Linear> half = Half(e, 6);
    ASSERT_TRUE(half) << ToString(half.error());
    for (int64_t i = 0; i < 9; ++i) {
      const auto* at =
          reinterpret_cast<const std::byte*>(data_.data()) + before + (e * 9 + i) * each;
      const float want = scale_dtype == "F8_E8M0" ? std::ldexp(1.0f, static_cast<int>(*at) - 127)
                                                  : LoadElement(at, *ToDType(scale_dtype), 0);
      EXPECT_EQ(half->matrix.scale.Ptr<float>()[i], want) << "matrix " << e << ", block " << i;
    }
  }
}

TEST_P(WeightLoaderTest, CutsThatLeaveARemainderAreRefused) {
  for (const WeightSlice& slice :
       {WeightSlice{0, 5, WeightSlice::Along::kRows, 5},
        WeightSlice{0, 3, WeightSlice::Along::kColumns, 3},
        WeightSlice{2, 2, WeightSlice::Along::kRows}, WeightSlice{0, 0, WeightSlice::Along::kRows},
        WeightSlice{-1, 2, WeightSlice::Along::kColumns}}) {
    const Result<Linear> cut = Whole(slice);
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, Code::kInvalidArgument);
    EXPECT_NE(cut.error().message.find("'w.weight'"), std::string::npos);
    EXPECT_FALSE(Half(1, 0, slice));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, WeightLoaderTest, testing::ValuesIn(kFormats),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::weight_loader_test
