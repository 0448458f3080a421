// MiniCPM3 in GGUF files: the factors of LongRoPE are tensors.
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/checkpoint/config/model_config.h"
#include "tests/support/checkpoint/gguf_model.h"
#include "tests/support/scratch_dir.h"

namespace latte::gguf_minicpm3_test {
namespace {

using namespace testing_support;  // NOLINT: the writer's functions

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What llama.cpp's converter writes, with 16 rotated dimensions: tensors here have eight values.
GgufModel Converted() {
  GgufModel m;
  const std::string a = "minicpm3.";
  m.Text("general.architecture", "minicpm3");
  const std::pair<const char*, int64_t> kSizes[] = {{"context_length", 32768},
                                                    {"embedding_length", 2560},
                                                    {"block_count", 62},
                                                    {"feed_forward_length", 6400},
                                                    {"attention.head_count", 40},
                                                    {"attention.head_count_kv", 40},
                                                    {"vocab_size", 73448},
                                                    {"attention.q_lora_rank", 768},
                                                    {"attention.kv_lora_rank", 256},
                                                    {"attention.key_length", 80},
                                                    {"rope.dimension_count", 16}};
  for (const auto& [key, value] : kSizes) m.U32(a + key, value);
  m.F32(a + "attention.layer_norm_rms_epsilon", 1e-5);
  m.U32("tokenizer.ggml.bos_token_id", 1);
  m.U32("tokenizer.ggml.eos_token_id", 2);
  m.tensors = {"token_embd.weight", "rope_factors_long.weight", "rope_factors_short.weight"};
  m.values = {{"rope_factors_long.weight", 3.5f}, {"rope_factors_short.weight", 1.1f}};
  return m;
}

class GgufMiniCpm3 : public testing::Test {
 protected:
  Result<ModelConfig> Parse(const GgufModel& model) const {
    const std::string path = dir_.File("m.gguf");
    std::ofstream(path, std::ios::binary) << model.Bytes();
    return LoadModelConfigAlone(path);
  }
  ModelConfig Config(const GgufModel& model) const {
    const Result<ModelConfig> config = Parse(model);
    if (config) return *config;
    ADD_FAILURE() << config.error().message;
    return {};
  }
  std::string ErrorOf(const GgufModel& model, Code code = Code::kCorrupt) const {
    const Result<ModelConfig> config = Parse(model);
    if (config) return "no error";
    EXPECT_EQ(config.error().code, code) << config.error().message;
    EXPECT_TRUE(config.error().message.starts_with(dir_.path()));
    return config.error().message;
  }

  ScratchDir dir_;
};

TEST_F(GgufMiniCpm3, IsThatOfTheModelsFolder) {
  const ModelConfig config = Config(Converted());
  const ModelConfig meant = ParseModelConfig(PublishedConfig("minicpm3")).value();
  EXPECT_EQ(config.model_type, "minicpm3");
  EXPECT_EQ(config.layers, meant.layers);
  EXPECT_EQ(config.vocab, meant.vocab);
  EXPECT_EQ(config.norm_eps, meant.norm_eps);
  EXPECT_EQ(config.mla.lora_norm_eps, meant.mla.lora_norm_eps);
  EXPECT_EQ(config.mla.cq, meant.mla.cq);
  EXPECT_EQ(config.mla.c, meant.mla.c);
  EXPECT_EQ(config.mla.n, meant.mla.n);
  EXPECT_EQ(config.mla.v, meant.mla.v);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.moe.experts, 0);
  EXPECT_EQ(config.rope.theta, meant.rope.theta);
  EXPECT_FALSE(config.rope.interleaved);
  EXPECT_EQ(config.rope.pair_factors, std::vector<double>(8, 1.1));
  EXPECT_EQ(config.rope.attention_factor, 1);
  EXPECT_EQ(config.scales.embedding, meant.scales.embedding);
  EXPECT_EQ(config.scales.residual, meant.scales.residual);
  EXPECT_EQ(config.scales.head, meant.scales.head);
  EXPECT_TRUE(config.assumed.empty());
}

TEST_F(GgufMiniCpm3, SaysWhatItAssumesOfAModelOfAnotherSize) {
  GgufModel m = Converted();
  m.U32("minicpm3.block_count", 30);
  ASSERT_EQ(Config(m).assumed.size(), 1u);
  EXPECT_PRED2(Contains, Config(m).assumed[0], "scale_emb 12, scale_depth 1.4");
}

TEST_F(GgufMiniCpm3, AnAnswerEndsWhereItsTurnEnds) {
  GgufModel m = Converted();
  EXPECT_EQ(Config(m).eos, std::vector<int64_t>{2});
  const std::string key = "tokenizer.ggml.tokens";
  const std::string tokens = GgufString("<unk>") + GgufString("<s>") + GgufString("</s>");
  m.entries[key] = GgufArrayEntry(key, kGgufText, 4, tokens + GgufString("<|im_end|>"));
  EXPECT_EQ(Config(m).eos, (std::vector<int64_t>{2, 3}));
  m.U32("tokenizer.ggml.eos_token_id", 3);
  EXPECT_EQ(Config(m).eos, std::vector<int64_t>{3});
}

TEST_F(GgufMiniCpm3, KeysOfOtherProgramsCount) {
  GgufModel m = Converted();
  m.U32("minicpm3.rope.scaling.original_context_length", 8192);
  EXPECT_EQ(Config(m).rope.pair_factors, std::vector<double>(8, 3.5));
  m.F32("minicpm3.rope.scaling.attn_factor", 1.5);
  EXPECT_EQ(Config(m).rope.attention_factor, 1.5);
  m.F32("minicpm3.rope.freq_base", 50'000);
  EXPECT_EQ(Config(m).rope.theta, 50'000);
  m.U32("minicpm3.attention.value_length", 96);
  EXPECT_EQ(Config(m).mla.v, 96);
}

TEST_F(GgufMiniCpm3, RefusesWrongFactors) {
  GgufModel m = Converted();
  m.tensors.pop_back();
  EXPECT_PRED2(Contains, ErrorOf(m), "expected the tensor 'rope_factors_short.weight', found none");
  m = Converted();
  m.values["rope_factors_long.weight"] = 0;
  EXPECT_PRED2(Contains, ErrorOf(m),
               "long_factor': expected numbers from 1e-06 to 1000000, found 0");
  m.values["rope_factors_long.weight"] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_PRED2(Contains, ErrorOf(m),
               "tensor 'rope_factors_long.weight': expected finite values, found nan as value 0");
  m = Converted();
  m.U32("minicpm3.rope.dimension_count", 32);
  EXPECT_PRED2(Contains, ErrorOf(m), "expected a list of 16 numbers");
  m = Converted();
  m.Text("minicpm3.rope.scaling.type", "yarn");
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "expected longrope, found 'yarn'");
}

}  // namespace
}  // namespace latte::gguf_minicpm3_test
