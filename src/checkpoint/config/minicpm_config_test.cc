// MiniCPM3: its scales of hidden states, its rotation, and what is refused.
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/checkpoint/config/model_config.h"

namespace latte::minicpm_config_test {
namespace {

JsonOut MiniCpm3() {
  const std::string path = fmt::format("{}/tests/data/configs/minicpm3.json", LATTE_SOURCE_DIR);
  return JsonOut::parse(*ReadFile(path, 1 << 20));
}

JsonOut WithKey(const char* pointer, const JsonOut& value) {
  JsonOut json = MiniCpm3();
  json[JsonOut::json_pointer(pointer)] = value;
  return json;
}

Result<ModelConfig> Parse(const JsonOut& json) {
  return Json::Parse(Dump(json), "config.json").and_then(ParseModelConfig);
}

ModelConfig Parsed(const JsonOut& json) {
  const auto config = Parse(json);
  if (!config) ADD_FAILURE() << config.error().message;
  return config.value_or(ModelConfig());
}

TEST(MiniCpmConfig, ReadsMiniCpm3) {
  const ModelConfig c = Parsed(MiniCpm3());
  EXPECT_EQ(c.mla.cq, 768);
  EXPECT_EQ(c.mla.c, 256);
  EXPECT_EQ(c.mla.qk(), 96);
  EXPECT_EQ(c.mla.v, 64);  // D/H: the file does not say it
  EXPECT_EQ(c.mla.lora_norm_eps, 1e-6);
  EXPECT_EQ(c.norm_eps, 1e-5);
  EXPECT_EQ(c.moe.experts, 0);
  EXPECT_TRUE(c.tied_embeddings);
  EXPECT_EQ(c.bos, 1);
  EXPECT_EQ(c.eos, (std::vector<int64_t>{2, 73440}));
  EXPECT_FALSE(c.rope.interleaved);
  EXPECT_EQ(c.rope.theta, 10000);
  EXPECT_FALSE(c.rope.yarn);
  ASSERT_EQ(c.rope.pair_factors.size(), 16u);
  EXPECT_EQ(c.rope.pair_factors[4], 2.093982484148734);
  EXPECT_EQ(c.rope.attention_factor, 1);
  EXPECT_EQ(c.scales.embedding, 12);
  EXPECT_EQ(c.scales.residual, 1.4 / std::sqrt(62.0));
  EXPECT_EQ(c.scales.head, 0.1);
}

TEST(MiniCpmConfig, ClassDefaultsFillAbsentKeys) {
  JsonOut json = MiniCpm3();
  for (const char* key : {"q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "scale_emb",
                          "scale_depth", "dim_model_base", "rms_norm_eps"})
    json.erase(key);
  const ModelConfig c = Parsed(json);
  const ModelConfig published = Parsed(MiniCpm3());
  EXPECT_EQ(c.mla.cq, 768);
  EXPECT_EQ(c.mla.qk(), 96);
  EXPECT_EQ(c.norm_eps, 1e-5);
  EXPECT_EQ(c.scales.embedding, published.scales.embedding);
  EXPECT_EQ(c.scales.residual, published.scales.residual);
  EXPECT_EQ(c.scales.head, published.scales.head);
}

TEST(MiniCpmConfig, NullMeansNoScaling) {
  EXPECT_EQ(Parsed(WithKey("/scale_depth", nullptr)).scales.residual, 1);
  EXPECT_EQ(Parsed(WithKey("/dim_model_base", nullptr)).scales.head, 1);
}

// The choice depends on the config alone, never on the length of a text.
TEST(MiniCpmConfig, LongFactorsHoldInModelsForMoreThanTheOriginalContext) {
  JsonOut json = MiniCpm3();
  json["rope_scaling"]["short_factor"][3] = 7.5;
  json["rope_scaling"]["long_factor"][3] = 9.5;
  EXPECT_EQ(Parsed(json).rope.pair_factors[3], 7.5);
  json["max_position_embeddings"] = 32769;
  const ModelConfig longer = Parsed(json);
  EXPECT_EQ(longer.rope.pair_factors[3], 9.5);
  EXPECT_NEAR(longer.rope.attention_factor, 1.0, 1e-5);
  json["max_position_embeddings"] = 32768 * 8;
  EXPECT_NEAR(Parsed(json).rope.attention_factor, std::sqrt(1 + 3.0 / 15.0), 1e-12);
  json["rope_scaling"]["factor"] = 32768.0;
  EXPECT_NEAR(Parsed(json).rope.attention_factor, std::sqrt(2.0), 1e-12);
  json["rope_scaling"]["attention_factor"] = 1.5;
  EXPECT_EQ(Parsed(json).rope.attention_factor, 1.5);
  json["rope_scaling"].erase("original_max_position_embeddings");
  EXPECT_EQ(Parsed(json).rope.pair_factors[3], 7.5);
}

TEST(MiniCpmConfig, OtherRotationsOfTheClass) {
  const ModelConfig plain = Parsed(WithKey("/rope_scaling", nullptr));
  EXPECT_TRUE(plain.rope.pair_factors.empty());
  EXPECT_EQ(plain.rope.attention_factor, 0);
}

TEST(MiniCpmConfig, RefusesWrongFactorsAndScales) {
  const struct {
    const char* pointer;
    JsonOut value;
    Code code;
    const char* words;
  } kCases[] = {
      {"/rope_scaling/type", "su", Code::kUnsupported,
       "'rope_type': expected longrope, yarn or default, found 'su'"},
      {"/rope_scaling/long_factor", JsonOut::array({1.0, 2.0}), Code::kCorrupt,
       "long_factor': expected a list of 16 numbers, one for each pair of qk_rope_head_dim, found "
       "2"},
      {"/rope_scaling/short_factor", nullptr, Code::kCorrupt, "short_factor': expected a list"},
      {"/rope_scaling/short_factor", 1.0, Code::kCorrupt, "found another type"},
      {"/rope_scaling/short_factor/3", "1", Code::kCorrupt, "short_factor"},
      {"/rope_scaling/short_factor/3", 0.0, Code::kCorrupt, "numbers from 1e-06 to 1000000"},
      {"/rope_scaling/long_factor/0", -2.0, Code::kCorrupt, "found -2"},
      {"/rope_scaling/original_max_position_embeddings", 1, Code::kCorrupt,
       "original_max_position_embeddings"},
      {"/rope_scaling/attention_factor", 0.0, Code::kCorrupt, "attention_factor"},
      {"/qk_rope_head_dim", 30, Code::kCorrupt, "expected a list of 15 numbers"},
      {"/qk_rope_head_dim", 31, Code::kCorrupt, "an even number"},
      {"/scale_emb", 0.0, Code::kCorrupt, "scale_emb"},
      {"/scale_depth", -1.4, Code::kCorrupt, "scale_depth"},
      {"/dim_model_base", 0, Code::kCorrupt, "dim_model_base"},
  };
  for (const auto& bad : kCases) {
    SCOPED_TRACE(bad.words);
    const auto config = Parse(WithKey(bad.pointer, bad.value));
    ASSERT_FALSE(config.has_value());
    EXPECT_EQ(config.error().code, bad.code) << config.error().message;
    EXPECT_NE(config.error().message.find(bad.words), std::string::npos) << config.error().message;
    EXPECT_NE(config.error().message.find("config.json"), std::string::npos);
  }
}

// The scales belong to MiniCPM's class; the keys mean nothing elsewhere.
TEST(MiniCpmConfig, OtherFamiliesHaveNoScales) {
  const std::string path = fmt::format("{}/tests/data/configs/youtu.json", LATTE_SOURCE_DIR);
  JsonOut json = JsonOut::parse(*ReadFile(path, 1 << 20));
  json["scale_emb"] = 12;
  const ModelConfig c = Parsed(json);
  EXPECT_EQ(c.scales.embedding, 1);
  EXPECT_EQ(c.scales.residual, 1);
  EXPECT_EQ(c.scales.head, 1);
}

}  // namespace
}  // namespace latte::minicpm_config_test
