// Which drafting layers of a checkpoint are loaded.
#include "src/models/mtp.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/json_out.h"
#include "src/checkpoint/expected_tensors.h"
#include "src/models/registry.h"
#include "tests/support/scratch_dir.h"

namespace latte::mtp_test {
namespace {

// A checkpoint with two drafting layers, whose config says `layers`.
class MtpTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Model>> Load(int layers, const ModelOptions& options) {
    const std::filesystem::path from =
        std::filesystem::path(LATTE_SOURCE_DIR) / "tests/goldens/v3_mtp2";
    std::stringstream config;
    config << std::ifstream(from / "config.json").rdbuf();
    std::string text = config.str();
    const std::string key = "\"num_nextn_predict_layers\": ";
    const size_t at = text.find(key + "2");
    EXPECT_NE(at, std::string::npos);
    text.replace(at + key.size(), 1, std::to_string(layers));
    std::ofstream(dir_.File("config.json")) << text;
    std::filesystem::copy_file(from / "model.safetensors", dir_.File("model.safetensors"),
                               std::filesystem::copy_options::overwrite_existing);
    return LoadModel(dir_.path(), options);
  }

  const testing_support::ScratchDir dir_;
};

TEST_F(MtpTest, AllLayersOrNone) {
  for (const int layers : {1, 2}) {
    const auto model = Load(layers, {.mtp = true});
    ASSERT_TRUE(model) << ToString(model.error());
    EXPECT_EQ((*model)->draft_layers(), layers);
    EXPECT_EQ((*model)->config().mtp_layers, layers);
  }
  const auto without = Load(2, {});
  ASSERT_TRUE(without) << ToString(without.error());
  EXPECT_FALSE((*without)->drafts());
  EXPECT_EQ((*without)->config().mtp_layers, 0);
}

TEST_F(MtpTest, ALayerThatIsNotThere) {
  const auto needed = Load(3, {.mtp = true});
  ASSERT_FALSE(needed);
  EXPECT_EQ(needed.error().code, Code::kNotFound);
  EXPECT_NE(needed.error().message.find("model.layers.4.eh_proj.weight"), std::string::npos)
      << needed.error().message;
  const auto optional = Load(3, {.mtp = true, .mtp_optional = true});
  ASSERT_TRUE(optional) << ToString(optional.error());
  EXPECT_FALSE((*optional)->drafts());
  EXPECT_EQ((*optional)->config().mtp_layers, 0);
  EXPECT_NE((*optional)->drafts_left_out().find("'model.layers.4.eh_proj.weight' is missing"),
            std::string::npos)
      << (*optional)->drafts_left_out();
}

constexpr int64_t kDecoderLayers = 2;  // of the fixture

// The name of a tensor of a drafting layer in another writer's files: "{}" is its number from 0 on.
using NameOf = std::function<std::string(int64_t layer, const std::string& rest)>;

// The fixture with the tensors of its drafting layers under other names, in `dir`.
void WriteRenamed(const std::string& dir, const std::string& prefix, const NameOf& name_of) {
  const std::filesystem::path from =
      std::filesystem::path(LATTE_SOURCE_DIR) / "tests/goldens/v3_mtp2";
  std::filesystem::copy_file(from / "config.json", dir + "/config.json",
                             std::filesystem::copy_options::overwrite_existing);
  std::stringstream file;
  file << std::ifstream(from / "model.safetensors", std::ios::binary).rdbuf();
  const std::string bytes = file.str();
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof(size));
  const JsonOut stored = JsonOut::parse(bytes.substr(8, size));
  JsonOut renamed;
  for (const auto& [name, entry] : stored.items()) {
    std::string other = name == "__metadata__" ? name : prefix + name;
    for (int64_t layer = 0; layer < 2; ++layer) {
      const std::string common = fmt::format("model.layers.{}.", kDecoderLayers + layer);
      if (name.starts_with(common)) other = name_of(layer, name.substr(common.size()));
    }
    renamed[other] = entry;
  }
  const uint64_t values = 8 + size;
  std::string header = renamed.dump();
  header.resize((header.size() + 7) / 8 * 8, ' ');
  size = header.size();
  std::ofstream out(dir + "/model.safetensors", std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof(size));
  out << header << bytes.substr(values);
}

TEST_F(MtpTest, NamesOfOtherWriters) {
  const std::pair<const char*, NameOf> kWriters[] = {
      {"", [](int64_t i, const std::string& rest) { return fmt::format("mtp.{}.{}", i, rest); }},
      {"", [](int64_t i,
              const std::string& rest) { return fmt::format("model.mtp.layers.{}.{}", i, rest); }},
      {"",  // counted from the decoder's last layer on
       [](int64_t i, const std::string& rest) {
         return fmt::format("mtp.{}.{}", kDecoderLayers + i, rest);
       }},
      {"",  // MLX: the decoder layer is a block
       [](int64_t i, const std::string& rest) {
         if (rest == "shared_head.norm.weight") return fmt::format("mtp.{}.norm.weight", i);
         const bool own = rest.starts_with("enorm") || rest.starts_with("hnorm") ||
                          rest.starts_with("eh_proj") || rest.starts_with("shared_head") ||
                          rest.starts_with("embed_tokens");
         return fmt::format("mtp.{}.{}{}", i, own ? "" : "block.", rest);
       }},
      {"language_model.",
       [](int64_t i, const std::string& rest) {
         return fmt::format("language_model.mtp.{}.{}", i, rest);
       }},
  };
  const std::string original = std::string(LATTE_SOURCE_DIR) + "/tests/goldens/v3_mtp2";
  const Checkpoint expected = *Checkpoint::Open(original);
  for (const auto& [prefix, name_of] : kWriters) {
    SCOPED_TRACE(name_of(0, "x"));
    WriteRenamed(dir_.path(), prefix, name_of);
    Checkpoint found = *Checkpoint::Open(dir_.path());
    found.UseCommonNames(kDecoderLayers);
    ASSERT_EQ(found.tensors().size(), expected.tensors().size());
    for (const auto& [name, tensor] : expected.tensors()) {
      const StoredTensor* other = found.Find(name);
      ASSERT_NE(other, nullptr) << name;
      ASSERT_EQ(other->shape, tensor.shape) << name;
      EXPECT_EQ(
          std::memcmp(found.View(*other).Ptr<std::byte>(), expected.View(tensor).Ptr<std::byte>(),
                      static_cast<size_t>(tensor.bytes)),
          0)
          << name;
    }
    const auto model = LoadModel(dir_.path(), {.mtp = true});
    ASSERT_TRUE(model) << ToString(model.error());
    EXPECT_EQ((*model)->draft_layers(), 2);
  }
}

TEST_F(MtpTest, WhatIsNoDraftingLayerIsRefusedByItsName) {
  // No tensor that only a drafting layer of this family has: another kind of drafter.
  WriteRenamed(dir_.path(), "", [](int64_t i, const std::string& rest) {
    return fmt::format("mtp.{}.draft_{}", i, rest);
  });
  const auto model = LoadModel(dir_.path(), {});
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("unexpected: 'mtp.0.draft_"), std::string::npos)
      << model.error().message;
}

}  // namespace
}  // namespace latte::mtp_test
