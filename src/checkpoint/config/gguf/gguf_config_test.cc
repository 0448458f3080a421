#include "src/checkpoint/config/gguf/gguf_config.h"

#include <algorithm>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/checkpoint/formats/formats.h"
#include "src/checkpoint/gguf/gguf.h"
#include "tests/support/checkpoint/gguf_model.h"
#include "tests/support/scratch_dir.h"

namespace latte::gguf_config_test {
namespace {

using namespace testing_support;  // NOLINT: the writer's functions

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class GgufConfig : public testing::Test {
 protected:
  std::string Write(const GgufModel& model) const {
    const std::string path = dir_.File("m.gguf");
    std::ofstream(path, std::ios::binary) << model.Bytes();
    return path;
  }
  Result<ModelConfig> Parse(const GgufModel& model) const {
    LATTE_ASSIGN_OR_RETURN(const GgufFiles files, GgufFiles::Open(Write(model)));
    return ParseGgufConfig(files.metadata(), files.tensors(),
                           [&](const StoredTensor& tensor) { return files.Bytes(tensor); });
  }
  ModelConfig Config(const GgufModel& model) const {
    const Result<ModelConfig> config = Parse(model);
    if (config) return *config;
    ADD_FAILURE() << config.error().message;
    return {};
  }
  std::string ErrorOf(const GgufModel& model, Code code) const {
    const Result<ModelConfig> config = Parse(model);
    if (config) return "no error";
    EXPECT_EQ(config.error().code, code) << config.error().message;
    EXPECT_TRUE(config.error().message.starts_with(dir_.path()));
    return config.error().message;
  }

  ScratchDir dir_;
};

void ExpectSameRope(const RopeConfig& a, const RopeConfig& b) {
  EXPECT_EQ(a.rotate, b.rotate);
  EXPECT_EQ(a.interleaved, b.interleaved);
  EXPECT_EQ(a.theta, b.theta);
  EXPECT_EQ(a.yarn, b.yarn);
  EXPECT_EQ(a.factor, b.factor);
  EXPECT_EQ(a.original_max, b.original_max);
  EXPECT_EQ(a.beta_fast, b.beta_fast);
  EXPECT_EQ(a.beta_slow, b.beta_slow);
  EXPECT_EQ(a.mscale, b.mscale);
  EXPECT_EQ(a.mscale_all_dim, b.mscale_all_dim);
  EXPECT_EQ(a.truncate, b.truncate);
  EXPECT_EQ(a.attention_factor, b.attention_factor);
  EXPECT_EQ(a.query_beta, b.query_beta);
}

void ExpectSameMoe(const MoeDims& a, const MoeDims& b) {
  EXPECT_EQ(a.experts, b.experts);
  EXPECT_EQ(a.chosen, b.chosen);
  EXPECT_EQ(a.shared, b.shared);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.groups, b.groups);
  EXPECT_EQ(a.groups_kept, b.groups_kept);
  EXPECT_EQ(a.router, b.router);
  EXPECT_EQ(a.scoring, b.scoring);
  EXPECT_EQ(a.normalize, b.normalize);
  EXPECT_EQ(a.scale_normalized, b.scale_normalized);
  EXPECT_EQ(a.scale, b.scale);
  EXPECT_EQ(a.first_dense, b.first_dense);
  EXPECT_EQ(a.freq, b.freq);
  EXPECT_EQ(a.bias_optional, b.bias_optional);
  EXPECT_EQ(a.post_norm, b.post_norm);
}

// Everything but the drafting layers and the hash of the text.
void ExpectSameConfig(const ModelConfig& a, const ModelConfig& b) {
  EXPECT_EQ(a.architecture, b.architecture);
  EXPECT_EQ(a.model_type, b.model_type);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.vocab, b.vocab);
  EXPECT_EQ(a.dense_width, b.dense_width);
  EXPECT_EQ(a.max_position, b.max_position);
  EXPECT_EQ(a.norm_eps, b.norm_eps);
  EXPECT_EQ(a.tied_embeddings, b.tied_embeddings);
  EXPECT_EQ(a.wrapped, b.wrapped);
  EXPECT_EQ(a.bos, b.bos);
  EXPECT_EQ(a.eos, b.eos);
  EXPECT_EQ(a.mla.d, b.mla.d);
  EXPECT_EQ(a.mla.h, b.mla.h);
  EXPECT_EQ(a.mla.cq, b.mla.cq);
  EXPECT_EQ(a.mla.c, b.mla.c);
  EXPECT_EQ(a.mla.n, b.mla.n);
  EXPECT_EQ(a.mla.r, b.mla.r);
  EXPECT_EQ(a.mla.v, b.mla.v);
  EXPECT_EQ(a.mla.bias, b.mla.bias);
  EXPECT_EQ(a.mla.lora_norm_eps, b.mla.lora_norm_eps);
  EXPECT_EQ(a.indexer.heads, b.indexer.heads);
  EXPECT_EQ(a.indexer.width, b.indexer.width);
  EXPECT_EQ(a.indexer.topk, b.indexer.topk);
  EXPECT_EQ(a.indexer.interleaved, b.indexer.interleaved);
  EXPECT_EQ(a.indexed_layers, b.indexed_layers);
  EXPECT_EQ(a.drafts_share_keys, b.drafts_share_keys);
  EXPECT_EQ(a.moe_layers, b.moe_layers);
  EXPECT_EQ(a.quant.schemes.size(), 1u);  // every matrix may be in a type of its own
  EXPECT_EQ(&a.quant.format(), &kGgufWeights);
  ExpectSameMoe(a.moe, b.moe);
  ExpectSameRope(a.rope, b.rope);
}

TEST_F(GgufConfig, IsThatOfTheModelsFolder) {
  for (const char* name :
       {"v2", "v2_lite", "v3", "kimi_k2", "moonlight", "glm_4_7_flash", "youtu"}) {
    SCOPED_TRACE(name);
    const ModelConfig config = Config(PublishedGguf(name));
    ExpectSameConfig(config, ParseModelConfig(PublishedConfig(name)).value());
    EXPECT_EQ(config.mtp_layers, 0);
    EXPECT_NE(config.text_hash, 0u);
  }
  for (const char* name : {"v3_2", "glm_5", "mistral_small_4"}) {
    SCOPED_TRACE(name);
    const ModelConfig config = Config(PublishedGguf(name));
    const ModelConfig meant = ParseModelConfig(PublishedConfig(name)).value();
    ExpectSameConfig(config, meant);
    EXPECT_EQ(config.mtp_layers, meant.mtp_layers);
  }
}

// Older files describe the heads by key_length and value_length.
TEST_F(GgufConfig, BothDescriptionsOfHeadsAreRead) {
  GgufModel m = PublishedGguf("v2_lite");
  m.entries.erase("deepseek2.attention.key_length_mla");
  m.entries.erase("deepseek2.attention.value_length_mla");
  m.U32("deepseek2.attention.head_count_kv", 16);
  m.U32("deepseek2.attention.key_length", 192);
  m.U32("deepseek2.attention.value_length", 128);
  ExpectSameConfig(Config(m), ParseModelConfig(PublishedConfig("v2_lite")).value());
  m.U32("deepseek2.attention.key_length_mla", 192);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt),
               "'deepseek2.attention.value_length_mla' is missing");
  m.entries.erase("deepseek2.attention.key_length_mla");
  m.U32("deepseek2.attention.key_length", 64);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt),
               "expected more than rope.dimension_count (64), found 64");
}

TEST_F(GgufConfig, GroupsOfExpertsAreTakenFromTheShapeIfTheyAreMissing) {
  GgufModel m = PublishedGguf("v3");
  ModelConfig config = Config(m);
  EXPECT_EQ(config.moe.groups, 8);
  EXPECT_EQ(config.moe.groups_kept, 4);
  ASSERT_EQ(config.assumed.size(), 1u);
  EXPECT_PRED2(Contains, config.assumed[0], "8 groups are taken, of which a token uses 4");
  EXPECT_EQ(UnusedFeatures(config), config.assumed);
  m.U32("deepseek2.expert_count", 192);
  EXPECT_EQ(Config(m).moe.groups_kept, 4);
  for (const int64_t experts : {64, 128, 160, 384}) {
    m.U32("deepseek2.expert_count", experts);
    config = Config(m);
    EXPECT_EQ(config.moe.groups, 1) << experts;
    EXPECT_EQ(config.moe.router, Router::kNoauxTc);
    EXPECT_TRUE(config.assumed.empty());
  }
  config = Config(PublishedGguf("v2"));
  EXPECT_EQ(config.moe.groups, 8);
  EXPECT_EQ(config.moe.groups_kept, 3);
  EXPECT_EQ(config.moe.router, Router::kGroupLimitedGreedy);
  EXPECT_EQ(config.assumed.size(), 1u);
  m = PublishedGguf("v2");
  m.U32("deepseek2.expert_count", 256);  // with softmax: no published model
  EXPECT_EQ(Config(m).moe.groups, 1);
}

TEST_F(GgufConfig, GroupsOfExpertsThatTheFileSaysCount) {
  GgufModel m = PublishedGguf("v3");
  m.U32("deepseek2.expert_group_count", 16);
  m.U32("deepseek2.expert_group_used_count", 2);
  ModelConfig config = Config(m);
  EXPECT_EQ(config.moe.groups, 16);
  EXPECT_EQ(config.moe.groups_kept, 2);
  EXPECT_TRUE(config.assumed.empty());
  m.U32("deepseek2.expert_group_count", 1);
  m.U32("deepseek2.expert_group_used_count", 1);
  EXPECT_EQ(Config(m).moe.groups, 1);
  m.U32("deepseek2.expert_group_count", 7);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "a divisor of n_routed_experts (256)");
  m.entries.erase("deepseek2.expert_group_count");
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "'deepseek2.expert_group_count' is missing");
}

TEST_F(GgufConfig, BetasOfYarnAreThoseOfKimiK2IfItsFileLacksThem) {
  GgufModel m = PublishedGguf("kimi_k2");
  ModelConfig config = Config(m);
  EXPECT_EQ(config.rope.beta_fast, 1.0);
  ASSERT_EQ(config.assumed.size(), 1u);
  EXPECT_PRED2(Contains, config.assumed[0], "beta_fast of its YaRN scaling: 1");
  m.Text("tokenizer.ggml.pre", "deepseek-v3");
  EXPECT_EQ(Config(m).rope.beta_fast, 32.0);
  m = PublishedGguf("kimi_k2");
  m.F32("deepseek2.rope.scaling.yarn_beta_fast", 16);
  m.F32("deepseek2.rope.scaling.yarn_beta_slow", 2);
  config = Config(m);
  EXPECT_EQ(config.rope.beta_fast, 16.0);
  EXPECT_EQ(config.rope.beta_slow, 2.0);
  EXPECT_TRUE(config.assumed.empty());
  EXPECT_EQ(Config(PublishedGguf("v3")).rope.beta_fast, 32.0);
}

TEST_F(GgufConfig, ScalesOfScoresAreKnownOrTheModelIsRefused) {
  const std::string key = "deepseek2.rope.scaling.yarn_log_multiplier";
  GgufModel m = PublishedGguf("v2");
  EXPECT_EQ(Config(m).rope.mscale_all_dim, 0.707);
  m.F32(key, 1.0);
  EXPECT_EQ(Config(m).rope.mscale_all_dim, 1.0);
  EXPECT_PRED2(Contains, Config(m).assumed.back(), "1 is taken as 0.1");
  m.F32(key, 0.0);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "found 0: how its attention scores");
  m.entries.erase(key);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "found no such key");
  m.Text("deepseek2.rope.scaling.type", "longrope");
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "expected yarn or none, found 'longrope'");
  m.Text("deepseek2.rope.scaling.type", "none");
  EXPECT_FALSE(Config(m).rope.yarn);
}

TEST_F(GgufConfig, ScoringIsTakenFromTheShapeIfItIsMissing) {
  const std::string key = "deepseek2.expert_gating_func";
  GgufModel m = PublishedGguf("v2_lite");
  m.entries.erase(key);
  EXPECT_EQ(Config(m).moe.scoring, Scoring::kSoftmax);
  m.U32(key, 0);  // none, as some files say it
  EXPECT_EQ(Config(m).moe.scoring, Scoring::kSoftmax);
  m.U32(key, 3);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "1 (softmax) or 2 (sigmoid), found 3");
  m = PublishedGguf("glm_4_7_flash");
  m.entries.erase(key);
  EXPECT_EQ(Config(m).moe.scoring, Scoring::kSigmoid);
  m.U32(key, 1);
  EXPECT_EQ(Config(m).moe.scoring, Scoring::kSoftmax);
}

TEST_F(GgufConfig, DraftingLayersAreAtTheEndOfTheBlocks) {
  GgufModel m = PublishedGguf("glm_4_7_flash");
  EXPECT_EQ(Config(m).mtp_layers, 0);
  m.U32("deepseek2.block_count", 48);
  EXPECT_EQ(Config(m).layers, 47);
  EXPECT_EQ(Config(m).mtp_layers, 1);
  m.U32("deepseek2.nextn_predict_layers", 2);
  EXPECT_EQ(Config(m).layers, 46);
  EXPECT_EQ(Config(m).mtp_layers, 2);
  m.U32("deepseek2.nextn_predict_layers", 48);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "fewer than block_count (48), found 48");
}

TEST_F(GgufConfig, TensorsSayWhatKeysDoNot) {
  GgufModel m = PublishedGguf("v3");
  m.entries.erase("deepseek2.vocab_size");
  EXPECT_EQ(Config(m).vocab, 8);  // rows of the embedding
  m.tensors = {"output.weight"};
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "'vocab_size': expected an integer from 1");
  m = PublishedGguf("v3");
  EXPECT_FALSE(Config(m).tied_embeddings);
  m.tensors = {"token_embd.weight"};
  EXPECT_TRUE(Config(m).tied_embeddings);
  m.tensors.push_back("blk.0.attn_q.weight");
  EXPECT_EQ(Config(m).mla.cq, 0);
}

TEST_F(GgufConfig, ACopyWithoutItsIndexerIsNamed) {
  GgufModel m = PublishedGguf("v3");
  EXPECT_EQ(Config(m).assumed.size(), 1u);
  m.Text("general.name", "DeepSeek-V3.2-Exp");
  ASSERT_EQ(Config(m).assumed.size(), 2u);
  EXPECT_PRED2(Contains, Config(m).assumed[1], "has no indexer");
}

TEST_F(GgufConfig, GroupsOfExpertsAreTakenWhereTheArchitectureHasSome) {
  EXPECT_EQ(Config(PublishedGguf("v3_2")).moe.groups, 8);
  EXPECT_PRED2(Contains, Config(PublishedGguf("v3_2")).assumed.at(0), "8 groups are taken");
  const ModelConfig glm = Config(PublishedGguf("glm_5"));
  EXPECT_EQ(glm.moe.groups, 1);
  EXPECT_TRUE(glm.assumed.empty());
}

TEST_F(GgufConfig, GlmScoresWithSigmoidIfItsFileDoesNotSayIt) {
  GgufModel m = PublishedGguf("glm_5");
  m.entries.erase("glm-dsa.expert_gating_func");
  EXPECT_EQ(Config(m).moe.scoring, Scoring::kSigmoid);
}

std::string BoolArray(const std::string& key, const std::vector<bool>& values) {
  std::string bytes;
  for (const bool value : values) bytes += value ? '\1' : '\0';
  return GgufArrayEntry(key, kGgufBool, values.size(), bytes);
}

TEST_F(GgufConfig, LayersThatChooseKeysAreInTheFileOrKnown) {
  const std::string key = "glm-dsa.attention.indexer.types";
  GgufModel m = PublishedGguf("glm_5");
  EXPECT_TRUE(Config(m).indexed_layers.empty());  // all
  m.U32("glm-dsa.context_length", 1'048'576);     // GLM-5.2
  ModelConfig config = Config(m);
  int64_t chosen = 0;
  for (int64_t i = 0; i < 78; ++i) {
    EXPECT_EQ(config.IsIndexed(i), i < 3 || i % 4 == 2) << i;
    chosen += config.IsIndexed(i) ? 1 : 0;
  }
  EXPECT_EQ(chosen, 21);
  EXPECT_TRUE(config.drafts_share_keys);
  EXPECT_PRED2(Contains, config.assumed.at(0), "0, 1, 2 and every fourth");

  std::vector<bool> stated(78, false);
  stated[0] = stated[40] = true;
  m.entries[key] = BoolArray(key, stated);
  config = Config(m);
  EXPECT_EQ(config.indexed_layers, stated);
  EXPECT_TRUE(config.assumed.empty());
  m.entries[key] = BoolArray(key, std::vector<bool>(79, true));
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "expected 78 values, one for each layer");
  m.entries[key] = BoolArray(key, std::vector<bool>(78, false));
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "a first layer that owns an indexer");
  m.U32(key, 1);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "expected an array of true and false");
  m.entries.erase(key);
  m.U32("glm-dsa.block_count", 40);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "for each of the 39 layers, found no");
}

TEST_F(GgufConfig, TheTemperatureOfQueriesIsInTheFileOrThePublishedOne) {
  GgufModel m = PublishedGguf("mistral_small_4");
  EXPECT_PRED2(Contains, Config(m).assumed.at(0), "0.1 is taken");
  m.F32("mistral4.attention.temperature_scale", 0.25);
  m.U32("mistral4.attention.temperature_length", 8192);
  EXPECT_EQ(Config(m).rope.query_beta, 0.25);
  EXPECT_TRUE(Config(m).assumed.empty());
  m.U32("mistral4.attention.temperature_length", 4096);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "(8192), found 4096");
  m.Text("mistral4.rope.scaling.type", "none");
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "expected yarn, found 'none'");
}

TEST_F(GgufConfig, OtherArchitecturesAreRefusedByName) {
  GgufModel m = PublishedGguf("v3");
  for (const auto& [name, why] :
       std::map<std::string, std::string>{{"deepseek", "it is not MLA"},
                                          {"deepseek2-ocr", "it is not MLA"},
                                          {"deepseek4", "it is not MLA"},
                                          {"deepseek41", "it is not MLA"},
                                          {"kimi-linear", "linear-attention"},
                                          {"kimi-k3", "linear-attention"},
                                          {"bailingmoe3", "linear-attention"},
                                          {"glm5next", "linear-attention"},
                                          {"glm5-next", "linear-attention"},
                                          {"gigachat35", "its layers are not built"},
                                          {"axk2", "gated norms"},
                                          {"hy_v4", "attention sinks"},
                                          {"plm", "without a gate"},
                                          {"openpangu", "sandwich norms"},
                                          {"dots3note", "sliding-window"},
                                          {"llama", "it is no MLA model that is known"}}) {
    m.Text("general.architecture", name);
    const std::string message = ErrorOf(m, Code::kUnsupported);
    EXPECT_PRED2(Contains, message, fmt::format("architecture '{}' is not supported: ", name));
    EXPECT_PRED2(Contains, message, why);
    EXPECT_PRED2(Contains, message, "; read from GGUF files: deepseek2");
  }
  m.entries.erase("general.architecture");
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "'general.architecture' is missing");
}

TEST_F(GgufConfig, FilesThatAreNoModelAreRefused) {
  GgufModel m = PublishedGguf("v3");
  m.Text("general.type", "mmproj");
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kUnsupported), "expected model, found 'mmproj'");
  m.entries.erase("general.type");
  EXPECT_TRUE(Parse(m).has_value());
}

TEST_F(GgufConfig, EveryRequiredKeyIsNamedIfItIsMissingOrOfAnotherType) {
  const std::vector<std::string> optional = {
      "attention.head_count_kv",  "attention.key_length", "attention.value_length",
      "attention.key_length_mla", "vocab_size",           "expert_count",
      "expert_shared_count",      "expert_weights_scale", "expert_weights_norm",
      "expert_gating_func",       "rope.scaling.type",    "rope.scaling.yarn_log_multiplier"};
  const GgufModel good = PublishedGguf("v3");
  int required = 0;
  for (const auto& [key, entry] : good.entries) {
    if (!key.starts_with("deepseek2.")) continue;
    GgufModel m = good;
    m.entries[key] = GgufArrayEntry(key, kGgufU8, 0, "");
    const bool unused = key.ends_with("head_count_kv") || key.ends_with("attention.key_length") ||
                        key.ends_with("attention.value_length");
    EXPECT_TRUE(unused || Contains(ErrorOf(m, Code::kCorrupt), key + "': expected ")) << key;
    if (std::find(optional.begin(), optional.end(), key.substr(10)) != optional.end()) continue;
    m.entries.erase(key);
    EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), fmt::format("key '{}' is missing", key));
    ++required;
  }
  EXPECT_EQ(required, 16);
}

TEST_F(GgufConfig, ValuesOutOfRangeAreRefused) {
  GgufModel m = PublishedGguf("v3");
  m.entries["deepseek2.block_count"] = GgufEntry("deepseek2.block_count", kGgufI32, GgufNumber(-1));
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "expected 0 to 1099511627776, found -1");
  m.U32("deepseek2.block_count", 20'000);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt),
               "its metadata as config.json: 'num_hidden_layers': expected an integer from 1");
  m = PublishedGguf("v3");
  m.U32("tokenizer.ggml.eos_token_id", 129'280);
  EXPECT_PRED2(Contains, ErrorOf(m, Code::kCorrupt), "a token id below vocab_size (129280)");
}

TEST_F(GgufConfig, IsLoadedFromAPath) {
  const Result<ModelConfig> config = LoadModelConfig(Write(PublishedGguf("v3")));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->mla.d, 7168);
}

}  // namespace
}  // namespace latte::gguf_config_test
