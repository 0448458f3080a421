#include "src/checkpoint/weight_memory.h"

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/checkpoint/formats/formats.h"
#include "tests/support/scratch_dir.h"

namespace latte::weight_memory_test {
namespace {

constexpr int64_t kGb = 1'000'000'000;

// A file with one tensor. Its data is a hole, or allocated on disk.
void WriteWeights(const std::string& path, const std::string& tensor, int64_t bytes, bool hole) {
  const std::string header = fmt::format(
      R"({{"{}":{{"dtype":"U8","shape":[{}],"data_offsets":[0,{}]}}}})", tensor, bytes, bytes);
  const uint64_t n = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&n), sizeof n);
  file << header;
  if (!hole) file << std::string(static_cast<size_t>(bytes), 'x');
  file.close();
  if (hole) std::filesystem::resize_file(path, sizeof n + n + static_cast<size_t>(bytes));
}

TEST(WeightMemory, IsThatOfTheFilesWhichTheIndexNames) {
  const testing_support::ScratchDir dir;
  WriteWeights(dir.File("a.safetensors"), "a", 5'000'000, true);
  WriteWeights(dir.File("b.safetensors"), "b", 3'000'000, true);
  WriteWeights(dir.File("consolidated.safetensors"), "c", 9'000'000, true);
  std::ofstream(dir.File("model.safetensors.index.json"))
      << R"({"weight_map":{"a":"a.safetensors","b":"b.safetensors"}})";
  const auto checkpoint = Checkpoint::Open(dir.path());
  ASSERT_TRUE(checkpoint) << ToString(checkpoint.error());
  EXPECT_NEAR(static_cast<double>(WeightMemory(*checkpoint)), 8e6, 1e5);
}

TEST(WeightMemory, FilesInMemoryNeedNoMore) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm here";
  std::string dir = "/dev/shm/latte_XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  WriteWeights(dir + "/model.safetensors", "a", 4'000'000, false);
  const auto checkpoint = Checkpoint::Open(dir);
  const int64_t bytes = checkpoint ? WeightMemory(*checkpoint) : -1;
  std::filesystem::remove_all(dir);
  EXPECT_EQ(bytes, 0);
}

TEST(LargerThanMemory, SaysBothSizesAndWhatToDo) {
  ModelConfig config;
  EXPECT_EQ(LargerThanMemory(config, 31 * kGb, 31 * kGb), std::nullopt);
  EXPECT_EQ(LargerThanMemory(config, 31 * kGb, std::nullopt), std::nullopt);
  const std::string text = LargerThanMemory(config, 31 * kGb, 24 * kGb).value_or("");
  for (const char* words : {"31.00 GB", "24.00 GB", "from disk", "latte quantize", "int8", "int4"})
    EXPECT_NE(text.find(words), std::string::npos) << words << ": " << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_NE(LargerThanMemory(config, 1, 0), std::nullopt);
}

// A token uses the same part of what is missing as of all weights.
TEST(LargerThanMemory, SaysWhatATokenReads) {
  const std::string path = std::string(LATTE_SOURCE_DIR) + "/tests/data/configs/v3.json";
  const ModelConfig config = *ParseModelConfig(*Json::Parse(*ReadFile(path, 1 << 20), path));
  // 37.6 of 671 billion parameters: V3's report says 37 without the embedding.
  EXPECT_NE(LargerThanMemory(config, 671 * kGb, 335 * kGb)
                ->find("of the 37.55 GB of each token, about 18.80 GB are read from disk"),
            std::string::npos)
      << *LargerThanMemory(config, 671 * kGb, 335 * kGb);
}

TEST(LargerThanMemory, AdvisesOnlyCopiesThatCanBeMade) {
  ModelConfig config;
  const auto advice = [&] { return LargerThanMemory(config, 31 * kGb, kGb).value_or(""); };
  config.quant.schemes = {{.format = &kFp8Weights}};
  EXPECT_NE(advice().find("int4"), std::string::npos);
  EXPECT_EQ(advice().find("int8"), std::string::npos);
  config.quant.schemes = {{.format = &kInt8Weights}};
  EXPECT_EQ(advice().find("quantize"), std::string::npos);
  EXPECT_NE(advice().find("from disk"), std::string::npos);
  config.quant.schemes = {
      {.format = &kAwqWeights}};  // repacked weights are not read from disk again
  EXPECT_EQ(advice().find("from disk"), std::string::npos);
  config.quant.schemes = {};
  config.wrapped = true;
  EXPECT_EQ(advice().find("quantize"), std::string::npos);
}

}  // namespace
}  // namespace latte::weight_memory_test
