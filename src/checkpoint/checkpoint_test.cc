// What holds for checkpoints in GGUF files as for folders: checks of weights, memory, keys.
#include "src/checkpoint/checkpoint.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/checkpoint/check_weights.h"
#include "src/checkpoint/config/model_config.h"
#include "src/checkpoint/expected_tensors.h"
#include "src/checkpoint/weight_memory.h"
#include "src/checkpoint/weights_key.h"
#include "tests/support/scratch_dir.h"

namespace latte::checkpoint_test {
namespace {

const std::filesystem::path kFixtures = std::filesystem::path(LATTE_SOURCE_DIR) / "tests/goldens";

// A copy of a fixture in which bytes can be changed.
class GgufCheckpointTest : public testing::Test {
 protected:
  void Copy(const std::string& fixture) {
    for (const auto& file : std::filesystem::directory_iterator(kFixtures / fixture))
      if (file.path().extension() == ".gguf")
        std::filesystem::copy_file(file.path(), dir_.File(file.path().filename().string()));
  }
  std::string v2() const { return dir_.File("model.gguf"); }
  std::string v3() const { return dir_.File("model-00002-of-00004.gguf"); }
  static void Write(const std::string& path, int64_t at, const std::string& bytes) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file << bytes;
  }

  const testing_support::ScratchDir dir_;
};

TEST_F(GgufCheckpointTest, ABlockThatIsNotFiniteIsNamedInEveryType) {
  Copy("gguf_v2");
  Copy("gguf_v3");
  std::set<std::string> types;
  for (const std::string& path : {v2(), v3()}) {
    const Checkpoint whole = *Checkpoint::Open(path);
    EXPECT_TRUE(CheckWeights(whole));
    for (const auto& [name, tensor] : whole.tensors()) {
      const DTypeInfo& info = InfoOf(*ToDType(tensor.dtype_name));
      if (info.use != DTypeUse::kBlocks || !types.insert(tensor.dtype_name).second) continue;
      const std::string file = whole.files()[static_cast<size_t>(tensor.file_index)]->path();
      const int64_t last = tensor.begin + tensor.bytes - info.bytes;
      const std::string kept =
          ReadFile(file, 1 << 24)
              ->substr(static_cast<size_t>(last), static_cast<size_t>(info.bytes));
      Write(file, last, std::string(static_cast<size_t>(info.bytes), '\xff'));
      const Status status = CheckWeights(*Checkpoint::Open(path));
      ASSERT_FALSE(status) << tensor.dtype_name;
      EXPECT_NE(status.error().message.find(name), std::string::npos) << status.error().message;
      EXPECT_NE(status.error().message.find(fmt::format("{}]", tensor.shape.back() - info.values)),
                std::string::npos)
          << status.error().message;
      Write(file, last, kept);
    }
  }
  EXPECT_EQ(types.size(), 13u);
}

TEST_F(GgufCheckpointTest, MemoryCountsTheCopiesOfKvB) {
  Copy("gguf_v2");
  Copy("gguf_v3");
  for (const std::string& path : {v2(), v3()}) {
    const Checkpoint checkpoint = *Checkpoint::Open(path);
    int64_t bytes = 0;
    for (const auto& file : checkpoint.files()) bytes += std::ssize(file->bytes());
    const ModelConfig config = *LoadModelConfig(path);
    const MlaDims& dims = config.mla;
    EXPECT_EQ(WeightMemory(checkpoint),
              bytes + 2 * config.layers * dims.h * (dims.n + dims.v) * dims.c);
  }
}

TEST_F(GgufCheckpointTest, TheKeyOfTheWeightsCoversTheMetadata) {
  Copy("gguf_v2");
  const std::string key = *WeightsKey(v2());
  EXPECT_EQ(key, *WeightsKey(v2()));
  const std::string text = *ReadFile(v2(), 1 << 24);
  const std::string name = "deepseek2.rope.freq_base";
  const size_t at = text.find(name);
  ASSERT_NE(at, std::string::npos);
  Write(v2(), static_cast<int64_t>(at + name.size() + 4), "\x01");
  EXPECT_NE(key, *WeightsKey(v2()));
}

TEST_F(GgufCheckpointTest, TensorsThatAreMissingOrUnknownAreNamed) {
  Copy("gguf_v2");
  const std::string text = *ReadFile(v2(), 1 << 24);
  const std::string name = "blk.1.attn_output.weight";
  Write(v2(), static_cast<int64_t>(text.find(name)), "blk.1.attn_sinks_.weight");
  const ModelConfig config = *LoadModelConfig(v2());
  Checkpoint checkpoint = *Checkpoint::Open(v2());
  checkpoint.UseCommonNames(config.layers);
  const Status status = CheckTensors(config, checkpoint.tensors());
  ASSERT_FALSE(status);
  for (const char* words :
       {"do not fit the metadata: 1 missing: 'model.layers.1.self_attn.o_proj.weight'",
        "1 unexpected: 'blk.1.attn_sinks_.weight'"})
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace latte::checkpoint_test
