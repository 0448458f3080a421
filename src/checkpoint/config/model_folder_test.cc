// LoadModelConfig: the files of a model folder, and the end tokens that they name.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/checkpoint/config/model_config.h"
#include "tests/support/tiny_tokenizer.h"

namespace latte::model_folder_test {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int64_t>;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

JsonOut Published(const std::string& name) {
  const auto text =
      ReadFile(fmt::format("{}/tests/data/configs/{}.json", LATTE_SOURCE_DIR, name), 1 << 20);
  if (!text) ADD_FAILURE() << text.error().message;
  return JsonOut::parse(text.value_or("{}"));
}

class ModelFolder : public testing::Test {
 protected:
  ModelFolder() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = fs::path(testing::TempDir()) / fmt::format("latte_{}_{}", getpid(), info->name());
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  ~ModelFolder() override { fs::remove_all(dir_); }
  void Write(const char* name, const std::string& text) const {
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }
  fs::path dir_;
};

TEST_F(ModelFolder, StopTokensOfGenerationConfigJoinThoseOfConfig) {
  Write("config.json", Dump(Published("kimi_k2")));
  EXPECT_EQ(LoadModelConfig(dir_.string()).value().eos, Ids{163585});
  Write("generation_config.json", R"({"eos_token_id": [163586, 163585]})");
  EXPECT_EQ(LoadModelConfig(dir_.string()).value().eos, (Ids{163585, 163586}));
  Write("generation_config.json", R"({"eos_token_id": 163840})");
  const auto loaded = LoadModelConfig(dir_.string());
  ASSERT_FALSE(loaded.has_value());
  EXPECT_PRED2(Contains, loaded.error().message, "generation_config.json: 'eos_token_id'");
}

// <s> is 256, </s> 257.
JsonOut EndTokenizer() {
  JsonOut file = SmallTokenizer();
  AddToken(&file, "<s>");
  AddToken(&file, "</s>");
  return file;
}

TEST_F(ModelFolder, TheTokenizersEndTokenStandsInForOneThatNoConfigNames) {
  JsonOut config = Published("v3");
  const auto eos = [&] { return LoadModelConfig(dir_.string()).value().eos; };
  const std::string object = R"({"eos_token": {"__type": "AddedToken", "content": "</s>"}})";
  Write("tokenizer.json", Dump(EndTokenizer()));
  for (const bool null : {false, true}) {
    config.erase("eos_token_id");
    if (null) config["eos_token_id"] = nullptr;
    Write("config.json", Dump(config));
    Write("tokenizer_config.json", "{}");
    EXPECT_EQ(eos(), Ids{});
    for (const std::string& text : {std::string(R"({"eos_token": "</s>"})"), object}) {
      Write("tokenizer_config.json", text);
      EXPECT_EQ(eos(), Ids{257}) << text;
    }
    Write("tokenizer_config.json", "{}");
    Write("special_tokens_map.json", object);
    EXPECT_EQ(eos(), Ids{257});
    fs::remove(dir_ / "special_tokens_map.json");
  }
  Write("tokenizer_config.json", object);
  Write("generation_config.json", R"({"eos_token_id": [9]})");
  EXPECT_EQ(eos(), Ids{9});
  Write("generation_config.json", R"({"eos_token_id": null})");
  EXPECT_EQ(eos(), Ids{257});
  config["eos_token_id"] = 5;
  Write("config.json", Dump(config));
  EXPECT_EQ(eos(), Ids{5});
}

TEST_F(ModelFolder, ATokenizerWithoutAnEndTokenOfTheModelIsNoError) {
  JsonOut config = Published("v3");
  config.erase("eos_token_id");
  config["vocab_size"] = 257;
  Write("config.json", Dump(config));
  Write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  for (const std::string& text : {Dump(EndTokenizer()), std::string("{"), std::string()}) {
    Write("tokenizer.json", text);
    const auto loaded = LoadModelConfig(dir_.string());
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    EXPECT_EQ(loaded->eos, Ids{});
  }
}

TEST_F(ModelFolder, ConfigAloneIsEnough) {
  const auto loaded =
      LoadModelConfig(fmt::format("{}/tests/data/configs/v3.json", LATTE_SOURCE_DIR));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->layers, 61);
}

TEST_F(ModelFolder, MissingConfigIsNotFound) {
  const auto loaded = LoadModelConfig(dir_.string());
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, Code::kNotFound);
  EXPECT_PRED2(Contains, loaded.error().message, "config.json");
}

TEST_F(ModelFolder, C18_WhatIsNoConfigIsCorrupt) {
  const std::string utf16 = std::string("\xff\xfe{\0}\0", 6);
  for (const std::string& text : {std::string(), utf16, std::string("{ // comment\n}"),
                                  std::string("[]"), std::string(R"({"hidden_size": NaN})"),
                                  std::string(R"({"model_type": "a", "model_type": "b"})")}) {
    Write("config.json", text);
    const auto loaded = LoadModelConfig(dir_.string());
    ASSERT_FALSE(loaded.has_value()) << text;
    EXPECT_EQ(loaded.error().code, Code::kCorrupt) << text;
    EXPECT_PRED2(Contains, loaded.error().message, "config.json");
  }
  fs::resize_file(dir_ / "config.json", 300u << 20);  // sparse
  EXPECT_PRED2(Contains, LoadModelConfig(dir_.string()).error().message, "at most 16777216 bytes");
}

}  // namespace
}  // namespace latte::model_folder_test
