// Every layout of integer weights, from numbers that are known: whole, cut, stacked, and broken.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/formats/formats.h"
#include "src/models/weight_loader.h"
#include "tests/support/parameter_name.h"

namespace latte::weight_formats_test {
namespace {

constexpr int64_t kN = 24;
constexpr int64_t kK = 48;
constexpr int64_t kGroup = 8;
constexpr int64_t kGroups = kK / kGroup;
constexpr int64_t kAwqOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};

// Code, zero and scale of the matrix that all layouts hold.
int64_t CodeAt(int64_t n, int64_t k) { return (n * 7 + k * 5 + n * k) % 16; }
int64_t Zero(int64_t n, int64_t g) { return 1 + (3 * n + 5 * g) % 16; }  // 1 to 16
float Scale(int64_t n, int64_t g) { return static_cast<float>(1 + (n + 3 * g) % 5) / 8; }

struct FileTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
using File = std::map<std::string, FileTensor>;

template <class T>
FileTensor Make(const char* dtype, std::vector<int64_t> shape, const auto& value) {
  FileTensor out = {dtype, std::move(shape), ""};
  const int64_t columns = out.shape.back();
  int64_t count = 1;
  for (const int64_t size : out.shape) count *= size;
  for (int64_t i = 0; i < count; ++i) {
    const auto element = static_cast<T>(value(i / columns, i % columns));
    out.bytes.append(reinterpret_cast<const char*>(&element), sizeof(T));
  }
  return out;
}

// A word of eight values.
uint32_t Word(const auto& value) {
  uint32_t word = 0;
  for (int64_t i = 0; i < 8; ++i) word |= static_cast<uint32_t>(value(i)) << (4 * i);
  return word;
}

struct Layout {
  const char* name;
  QuantScheme scheme;
  bool zeros;  // else they are 8

  friend void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }
};
const Layout kLayouts[] = {
    {"pack", {.format = &kPackedIntWeights, .bits = 4, .block_columns = kGroup}, false},
    {"pack_zeros", {.format = &kPackedIntWeights, .bits = 4, .block_columns = kGroup}, true},
    {"awq", {.format = &kAwqWeights, .bits = 4, .block_columns = kGroup}, true},
    {"gptq",
     {.format = &kGptqWeights, .bits = 4, .block_columns = kGroup, .zero_minus_one = true},
     true},
    {"gptq_v2", {.format = &kGptqWeights, .bits = 4, .block_columns = kGroup}, true},
    {"int8", {.format = &kInt8Weights, .bits = 8, .block_columns = kGroup}, false},
    {"pack8", {.format = &kPackedIntWeights, .bits = 8, .block_columns = kGroup}, false},
};

// A zero of 16 can be said by GPTQ's first version alone.
int64_t ZeroOf(const Layout& layout, int64_t n, int64_t g) {
  if (!layout.zeros) return 8;
  return layout.scheme.zero_minus_one ? Zero(n, g) : Zero(n, g) % 16;
}

File MakeFile(const Layout& layout) {
  const std::string name = layout.name;
  const auto scales = Make<float>("F32", {kN, kGroups}, Scale);
  const auto across =
      Make<float>("F32", {kGroups, kN}, [](int64_t g, int64_t n) { return Scale(n, g); });
  const auto along_k = [](int64_t n, int64_t j) {
    return Word([&](int64_t i) { return CodeAt(n, 8 * j + i); });
  };
  const int64_t less = layout.scheme.zero_minus_one ? 1 : 0;
  if (name == "int8")
    return {{"w.weight",
             Make<int8_t>("I8", {kN, kK}, [](int64_t n, int64_t k) { return CodeAt(n, k) - 8; })},
            {"w.weight_scale", scales}};
  if (name == "pack8")
    return {{"w.weight_packed",
             Make<uint32_t>("I32", {kN, kK / 4},
                            [](int64_t n, int64_t j) {
                              uint32_t word = 0;
                              for (int64_t i = 0; i < 4; ++i)
                                word |= static_cast<uint32_t>(CodeAt(n, 4 * j + i) - 8 + 128)
                                        << (8 * i);
                              return word;
                            })},
            {"w.weight_scale", scales}};
  if (name == "awq")
    return {{"w.qweight", Make<uint32_t>("I32", {kK, kN / 8},
                                         [](int64_t k, int64_t j) {
                                           return Word([&](int64_t p) {
                                             return CodeAt(8 * j + kAwqOrder[p], k);
                                           });
                                         })},
            {"w.qzeros", Make<uint32_t>("I32", {kGroups, kN / 8},
                                        [&](int64_t g, int64_t j) {
                                          return Word([&](int64_t p) {
                                            return ZeroOf(layout, 8 * j + kAwqOrder[p], g);
                                          });
                                        })},
            {"w.scales", across}};
  if (name.starts_with("gptq"))
    return {{"w.qweight", Make<uint32_t>("I32", {kK / 8, kN},
                                         [&](int64_t j, int64_t n) { return along_k(n, j); })},
            {"w.qzeros", Make<uint32_t>("I32", {kGroups, kN / 8},
                                        [&](int64_t g, int64_t j) {
                                          return Word([&](int64_t i) {
                                            return ZeroOf(layout, 8 * j + i, g) - less;
                                          });
                                        })},
            {"w.scales", across},
            {"w.g_idx", Make<int32_t>("I32", {kK}, [](int64_t, int64_t k) { return k / kGroup; })}};
  File file = {{"w.weight_packed", Make<uint32_t>("I32", {kN, kK / 8}, along_k)},
               {"w.weight_scale", scales},
               {"w.weight_shape",
                Make<int64_t>("I64", {2}, [](int64_t, int64_t i) { return i == 0 ? kN : kK; })}};
  if (layout.zeros)
    file["w.weight_zero_point"] =
        Make<uint32_t>("I32", {kN / 8, kGroups}, [&](int64_t j, int64_t g) {
          return Word([&](int64_t i) { return ZeroOf(layout, 8 * j + i, g); });
        });
  return file;
}

class WeightFormats : public testing::TestWithParam<Layout> {
 protected:
  void TearDown() override { std::filesystem::remove_all(dir_); }

  Checkpoint Open(const File& file) {
    std::filesystem::create_directories(dir_);
    std::string header;
    std::string data;
    for (const auto& [name, tensor] : file) {
      header +=
          fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                      header.empty() ? "{" : ",", name, tensor.dtype, ShapeString(tensor.shape),
                      data.size(), data.size() + tensor.bytes.size());
      data += tensor.bytes;
    }
    const uint64_t size = header.size() + 1;
    std::ofstream out(dir_ / "model.safetensors", std::ios::binary);
    out.write(reinterpret_cast<const char*>(&size), 8);
    out << header << "}" << data;
    out.close();
    return *Checkpoint::Open(dir_);
  }

  Result<Linear> Load(const Checkpoint& checkpoint, const WeightSlice& slice = {}) {
    return WeightLoader(checkpoint, QuantConfig{{GetParam().scheme}}, &threads_)
        .Matrix("w.weight", kN, kK, slice);
  }

  // The weight as products see it: row k of the result is column k.
  Tensor Columns(const Linear& linear) {
    Tensor one(DType::kF32, {linear.inputs(), linear.inputs()});
    for (int64_t k = 0; k < linear.inputs(); ++k) one.view().Row<float>(k)[k] = 1;
    Tensor y(DType::kF32, {linear.inputs(), linear.outputs()});
    MultiplyExactly(linear, one, y, step_);
    return y;
  }

  void ExpectPart(const Result<Linear>& linear, int64_t row_begin, int64_t column_begin) {
    ASSERT_TRUE(linear) << ToString(linear.error());
    const Tensor found = Columns(*linear);
    for (int64_t k = 0; k < linear->inputs(); ++k)
      for (int64_t n = 0; n < linear->outputs(); ++n) {
        const int64_t row = row_begin + n;
        const int64_t column = column_begin + k;
        const int64_t g = column / kGroup;
        EXPECT_EQ(
            found.view().Row<float>(k)[n],
            static_cast<float>(CodeAt(row, column) - ZeroOf(GetParam(), row, g)) * Scale(row, g))
            << GetParam().name << " [" << row << ", " << column << "]";
      }
  }

  void ExpectRefused(const File& file, Code code, const std::string& words) {
    const Checkpoint checkpoint = Open(file);
    const auto found = Load(checkpoint);
    ASSERT_FALSE(found) << "accepted; expected " << words;
    EXPECT_EQ(found.error().code, code) << found.error().message;
    EXPECT_NE(found.error().message.find(words), std::string::npos) << found.error().message;
  }

  std::filesystem::path dir_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("latte_formats_{}", getpid());
  Workspace workspace_;
  ThreadPool threads_{2};
  Machine machine_ = *Machine::Detect();
  StepContext step_ = {
      .arithmetic = DType::kF32, .workspace = &workspace_, .exec = {&threads_, &machine_}};
};

TEST_P(WeightFormats, EveryElementMeansWhatItShould) {
  const Checkpoint checkpoint = Open(MakeFile(GetParam()));
  ExpectPart(Load(checkpoint), 0, 0);
}

TEST_P(WeightFormats, RanksHoldTheirRowsAndWholeGroupsOfColumns) {
  const Checkpoint checkpoint = Open(MakeFile(GetParam()));
  for (const int64_t count : {2, 3})
    for (int64_t i = 0; i < count; ++i) {
      ExpectPart(Load(checkpoint, {i, count, WeightSlice::Along::kRows}), i * (kN / count), 0);
      ExpectPart(Load(checkpoint, {i, count, WeightSlice::Along::kColumns}), 0, i * (kK / count));
    }
  for (const auto along : {WeightSlice::Along::kRows, WeightSlice::Along::kColumns})
    EXPECT_EQ(Load(checkpoint, {0, 5, along, 5}).error().code, Code::kInvalidArgument);
  // 4 parts of 12 columns would cut a group of 8.
  const auto cut = Load(checkpoint, {0, 4, WeightSlice::Along::kColumns});
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("whole groups of 8"), std::string::npos);
}

TEST_P(WeightFormats, F43_EveryTensorMustBeThereInItsShape) {
  const File file = MakeFile(GetParam());
  for (const auto& [name, tensor] : file) {
    const bool optional =
        name == "w.g_idx" || name == "w.weight_shape" || name == "w.weight_zero_point";
    if (!optional) {
      File without = file;
      without.erase(name);
      ExpectRefused(without, Code::kNotFound, "is missing");
    }
    File longer = file;
    longer[name].shape[0] += 1;
    longer[name].bytes.append(tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]), '\0');
    ExpectRefused(longer, Code::kCorrupt, "expected shape");
  }
}

TEST_P(WeightFormats, F44_ColumnsOutOfOrder) {
  File file = MakeFile(GetParam());
  if (!file.contains("w.g_idx")) GTEST_SKIP() << "has no order";
  const auto set = [&](int32_t group) {
    File changed = file;
    std::memcpy(changed["w.g_idx"].bytes.data() + 4 * 9, &group, sizeof(group));
    return changed;
  };
  ExpectRefused(set(0), Code::kUnsupported, "desc_act");
  ExpectRefused(set(6), Code::kCorrupt, "found 6 at [9]");
  ExpectRefused(set(-1), Code::kCorrupt, "found -1 at [9]");
}

TEST_P(WeightFormats, F44_AShapeThatLies) {
  File file = MakeFile(GetParam());
  if (!file.contains("w.weight_shape")) GTEST_SKIP() << "has none";
  file["w.weight_shape"].bytes[0] = 7;
  ExpectRefused(file, Code::kCorrupt, "'w.weight_shape': expected [24, 48], found [7, 48]");
}

TEST_P(WeightFormats, F44_Int8HasNoZeros) {
  File file = MakeFile(GetParam());
  if (std::string(GetParam().name) != "int8") GTEST_SKIP() << "has zeros, or none";
  file["w.weight_zero_point"] =
      Make<int8_t>("I8", {kN, kGroups}, [](int64_t n, int64_t) { return n == 2 ? -3 : 0; });
  ExpectRefused(file, Code::kUnsupported, "found -3");
}

TEST_P(WeightFormats, StacksHoldTheirMatricesOneAfterTheOther) {
  File file = MakeFile(GetParam());
  if (!file.contains("w.weight") && !file.contains("w.weight_packed"))
    GTEST_SKIP() << "is not stacked";
  File stack;
  for (auto& [name, tensor] : file) {  // the same matrix three times
    if (name == "w.weight_shape" || name == "w.weight_zero_point") continue;
    FileTensor& out = stack["s.gate_up_proj" + name.substr(8)] = tensor;
    out.shape.insert(out.shape.begin(), 3);
    out.bytes = tensor.bytes + tensor.bytes + tensor.bytes;
  }
  if (file.contains("w.weight_zero_point")) GTEST_SKIP() << "zeros of stacks are cut alike";
  const Checkpoint checkpoint = Open(stack);
  const WeightLoader load(checkpoint, QuantConfig{{GetParam().scheme}}, &threads_);
  for (int64_t e = 0; e < 3; ++e)
    ExpectPart(load.FromStack({"s.gate_up_proj", 3, kN, kK, e, 12, 12}), 12, 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, WeightFormats, testing::ValuesIn(kLayouts),
                         testing_support::ParameterName());

}  // namespace
}  // namespace latte::weight_formats_test
