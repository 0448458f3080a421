#include "src/checkpoint/config/model_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/checkpoint/formats/formats.h"

namespace latte::model_config_test {
namespace {

using Ids = std::vector<int64_t>;

JsonOut Published(const std::string& name) {
  const auto text =
      ReadFile(fmt::format("{}/tests/data/configs/{}.json", LATTE_SOURCE_DIR, name), 1 << 20);
  if (!text) ADD_FAILURE() << text.error().message;
  return JsonOut::parse(text.value_or("{}"));
}

Result<ModelConfig> Parse(const JsonOut& json) {
  return Json::Parse(Dump(json), "config.json").and_then(ParseModelConfig);
}

ModelConfig Parsed(const JsonOut& json) {
  const auto config = Parse(json);
  if (!config) ADD_FAILURE() << config.error().message;
  return config.value_or(ModelConfig());
}

// Changes of a config as JSON pointer and new value; an empty value removes the key.
using Edits = std::vector<std::pair<const char*, const char*>>;

JsonOut Edited(const std::string& model, const Edits& edits) {
  JsonOut json = Published(model);
  for (const auto& [pointer, value] : edits) {
    if (*value == '\0')
      json.erase(pointer + 1);  // only keys of the top level are removed
    else
      json[JsonOut::json_pointer(pointer)] = JsonOut::parse(value);
  }
  return json;
}

TEST(ModelConfig, ReadsDeepseekV3) {
  const ModelConfig c = Parsed(Published("v3"));
  EXPECT_EQ(c.architecture, "DeepseekV3ForCausalLM");
  EXPECT_EQ(c.model_type, "deepseek_v3");
  EXPECT_EQ(c.layers, 61);
  EXPECT_EQ(c.vocab, 129280);
  EXPECT_EQ(c.dense_width, 18432);
  EXPECT_EQ(c.max_position, 163840);
  EXPECT_EQ(c.norm_eps, 1e-6);
  EXPECT_FALSE(c.tied_embeddings);
  EXPECT_EQ(c.mtp_layers, 1);
  EXPECT_EQ(c.bos, 0);
  EXPECT_EQ(c.eos, Ids{1});
  EXPECT_EQ(c.mla.d, 7168);
  EXPECT_EQ(c.mla.h, 128);
  EXPECT_EQ(c.mla.cq, 1536);
  EXPECT_EQ(c.mla.c, 512);
  EXPECT_EQ(c.mla.n, 128);
  EXPECT_EQ(c.mla.r, 64);
  EXPECT_EQ(c.mla.v, 128);
  EXPECT_FALSE(c.mla.bias);
  EXPECT_EQ(c.mla.lora_norm_eps, 1e-6);
  EXPECT_EQ(c.moe.experts, 256);
  EXPECT_EQ(c.moe.chosen, 8);
  EXPECT_EQ(c.moe.shared, 1);
  EXPECT_EQ(c.moe.width, 2048);
  EXPECT_EQ(c.moe.groups, 8);
  EXPECT_EQ(c.moe.groups_kept, 4);
  EXPECT_EQ(c.moe.router, Router::kNoauxTc);
  EXPECT_EQ(c.moe.scoring, Scoring::kSigmoid);
  EXPECT_TRUE(c.moe.normalize);
  EXPECT_TRUE(c.moe.scale_normalized);
  EXPECT_EQ(c.moe.scale, 2.5);
  EXPECT_FALSE(c.IsMoe(2));
  EXPECT_TRUE(c.IsMoe(3));
  EXPECT_TRUE(c.rope.yarn);
  EXPECT_TRUE(c.rope.rotate);
  EXPECT_TRUE(c.rope.interleaved);
  EXPECT_EQ(c.rope.theta, 10000);
  EXPECT_EQ(c.rope.factor, 40);
  EXPECT_EQ(c.rope.original_max, 4096);
  EXPECT_EQ(c.rope.beta_fast, 32);
  EXPECT_EQ(c.rope.beta_slow, 1);
  EXPECT_EQ(c.rope.mscale, 1.0);
  EXPECT_EQ(c.rope.mscale_all_dim, 1.0);
  EXPECT_TRUE(c.rope.truncate);
  EXPECT_EQ(c.rope.attention_factor, 0.0);
}

TEST(ModelConfig, ReadsDeepseekV2AndLite) {
  const ModelConfig lite = Parsed(Published("v2_lite"));
  EXPECT_EQ(lite.mla.cq, 0);  // null: no query latent
  EXPECT_EQ(lite.moe.router, Router::kGreedy);
  EXPECT_EQ(lite.moe.scoring, Scoring::kSoftmax);
  EXPECT_FALSE(lite.moe.normalize);
  EXPECT_FALSE(lite.moe.scale_normalized);
  EXPECT_EQ(lite.moe.scale, 1.0);
  EXPECT_EQ(lite.moe.first_dense, 1);
  EXPECT_EQ(lite.rope.mscale, 0.707);
  EXPECT_EQ(lite.rope.mscale_all_dim, 0.707);
  EXPECT_EQ(lite.mtp_layers, 0);
  EXPECT_EQ(lite.eos, Ids{100001});
  const ModelConfig v2 = Parsed(Published("v2"));
  EXPECT_EQ(v2.mla.cq, 1536);
  EXPECT_EQ(v2.moe.router, Router::kGroupLimitedGreedy);
  EXPECT_EQ(v2.moe.groups, 8);
  EXPECT_EQ(v2.moe.groups_kept, 3);
  EXPECT_EQ(v2.moe.scale, 16.0);
}

TEST(ModelConfig, ReadsTheV3ClassUnderItsOtherNames) {
  const ModelConfig kimi = Parsed(Published("kimi_k2"));
  EXPECT_EQ(kimi.model_type, "kimi_k2");
  EXPECT_EQ(kimi.architecture, "DeepseekV3ForCausalLM");
  EXPECT_EQ(kimi.moe.groups, 1);
  EXPECT_EQ(kimi.moe.scale, 2.827);
  EXPECT_TRUE(kimi.moe.scale_normalized);
  EXPECT_EQ(kimi.rope.theta, 50000);
  EXPECT_EQ(kimi.rope.beta_fast, 1);
  const ModelConfig moonlight = Parsed(Published("moonlight"));
  EXPECT_EQ(moonlight.model_type, "deepseek_v3");
  EXPECT_FALSE(moonlight.rope.yarn);
  EXPECT_EQ(moonlight.rope.factor, 1.0);
  EXPECT_EQ(moonlight.norm_eps, 1e-5);
  EXPECT_EQ(moonlight.mla.lora_norm_eps, 1e-6);
  EXPECT_EQ(moonlight.mla.cq, 0);
}

TEST(ModelConfig, ReadsGlmFlashWhoseClassNamesTheRouter) {
  JsonOut json = Published("glm_4_7_flash");
  for (const char* key : {"topk_method", "norm_topk_prob", "n_group", "routed_scaling_factor",
                          "rms_norm_eps", "v_head_dim"})
    json.erase(key);
  const ModelConfig c = Parsed(json);
  EXPECT_EQ(c.moe.router, Router::kNoauxTc);
  EXPECT_EQ(c.moe.scoring, Scoring::kSigmoid);
  EXPECT_TRUE(c.moe.normalize);
  EXPECT_TRUE(c.moe.scale_normalized);
  EXPECT_EQ(c.moe.groups, 1);
  EXPECT_EQ(c.moe.scale, 1.8);
  EXPECT_EQ(c.norm_eps, 1e-5);
  EXPECT_EQ(c.mla.v, 256);
  EXPECT_TRUE(UnusedFeatures(c).empty());
}

TEST(ModelConfig, LayerKindsAsAListGoBeforeFirstDense) {
  JsonOut json = Published("glm_4_7_flash");
  std::vector<std::string> kinds(47, "sparse");
  kinds[0] = kinds[5] = "dense";
  json["mlp_layer_types"] = kinds;
  const ModelConfig c = Parsed(json);
  EXPECT_FALSE(c.IsMoe(0));
  EXPECT_TRUE(c.IsMoe(4));
  EXPECT_FALSE(c.IsMoe(5));
  EXPECT_TRUE(c.IsMoe(46));
  EXPECT_TRUE(c.IsMoe(47));  // the MTP layer
}

TEST(ModelConfig, ReadsIndexers) {
  const ModelConfig v32 = Parsed(Published("v3_2"));
  EXPECT_EQ(v32.indexer.heads, 64);
  EXPECT_EQ(v32.indexer.width, 128);
  EXPECT_EQ(v32.indexer.topk, 2048);
  EXPECT_EQ(v32.moe.groups, 8);
  EXPECT_TRUE(v32.IsIndexed(0));
  EXPECT_TRUE(v32.IsIndexed(61));
  EXPECT_TRUE(UnusedFeatures(v32).empty());
  EXPECT_FALSE(Parsed(Published("v3")).IsIndexed(0));
}

// The flag, if present; else by family.
TEST(ModelConfig, RotationOfIndexers) {
  for (const auto& [name, usual] : {std::pair("v3_2", false), std::pair("glm_5", true)}) {
    JsonOut json = Published(name);
    json.erase("indexer_rope_interleave");
    EXPECT_EQ(Parsed(json).indexer.interleaved, usual) << name;
    for (const bool flag : {false, true}) {
      json["indexer_rope_interleave"] = flag;
      EXPECT_EQ(Parsed(json).indexer.interleaved, flag) << name;
    }
  }
}

TEST(ModelConfig, SharingOfKeysAmongDrafts) {
  JsonOut json = Published("glm_5");
  json.erase("index_share_for_mtp_iteration");
  EXPECT_FALSE(Parsed(json).drafts_share_keys);
  json["index_share_for_mtp_iteration"] = true;
  EXPECT_TRUE(Parsed(json).drafts_share_keys);
}

// The pattern of GLM-5.2: F F F S S S F S S S F …, 21 full and 57 shared layers.
TEST(ModelConfig, SharedIndexersByFrequencyPatternOrList) {
  JsonOut json = Published("glm_5");
  json["index_topk_freq"] = 4;
  json["index_skip_topk_offset"] = 3;
  const ModelConfig by_frequency = Parsed(json);
  std::string pattern;
  for (int64_t i = 0; i < 78; ++i) pattern += by_frequency.IsIndexed(i) ? 'F' : 'S';
  EXPECT_EQ(pattern.substr(0, 12), "FFFSSSFSSSFS");
  EXPECT_EQ(std::count(pattern.begin(), pattern.end(), 'F'), 21);
  json["index_topk_freq"] = 1;
  json["index_topk_pattern"] = pattern;
  EXPECT_EQ(Parsed(json).indexed_layers, by_frequency.indexed_layers);
  std::vector<std::string> words;
  for (const char letter : pattern) words.push_back(letter == 'F' ? "full" : "shared");
  json.erase("index_topk_pattern");
  json["indexer_types"] = words;
  EXPECT_EQ(Parsed(json).indexed_layers, by_frequency.indexed_layers);
}

TEST(ModelConfig, ReadsYoutuAndAxk1) {
  JsonOut json = Published("youtu");
  json.erase("tie_word_embeddings");
  const ModelConfig youtu = Parsed(json);
  EXPECT_TRUE(youtu.tied_embeddings);
  EXPECT_EQ(youtu.moe.experts, 0);
  EXPECT_FALSE(youtu.IsMoe(31));
  const ModelConfig axk1 = Parsed(Published("axk1"));
  EXPECT_TRUE(axk1.moe.post_norm);
  EXPECT_TRUE(axk1.moe.bias_optional);
  EXPECT_EQ(axk1.moe.groups, 8);
}

TEST(ModelConfig, ReadsMistral4AloneAndInItsWrapper) {
  const JsonOut text = Published("mistral_small_4");
  const JsonOut wrapper = {{"architectures", {"Mistral3ForConditionalGeneration"}},
                           {"model_type", "mistral3"},
                           {"text_config", text}};
  for (const JsonOut& json : {text, wrapper}) {
    const ModelConfig c = Parsed(json);
    EXPECT_EQ(c.architecture, "Mistral4ForCausalLM");
    EXPECT_EQ(c.wrapped, json.contains("text_config"));
    EXPECT_EQ(c.mla.cq, 1024);
    EXPECT_EQ(c.mla.c, 256);
    EXPECT_EQ(c.mla.n, 64);
    EXPECT_EQ(c.mla.r, 64);
    EXPECT_EQ(c.mla.v, 128);
    EXPECT_TRUE(c.rope.interleaved);
    EXPECT_EQ(c.rope.factor, 128);
    EXPECT_EQ(c.rope.original_max, 8192);
    EXPECT_EQ(c.rope.query_beta, 0.1);
    EXPECT_EQ(c.moe.experts, 128);
    EXPECT_EQ(c.moe.chosen, 4);
    EXPECT_EQ(c.moe.scoring, Scoring::kSoftmax);
    EXPECT_TRUE(c.moe.normalize);
    EXPECT_TRUE(c.moe.scale_normalized);
    EXPECT_TRUE(c.moe.bias_optional);
    EXPECT_EQ(c.moe.scale, 1.0);
    EXPECT_TRUE(c.IsMoe(0));
    EXPECT_EQ(c.mtp_layers, 0);
  }
}

TEST(ModelConfig, StaticFp8WithoutBlocksHasOneScalePerMatrix) {
  const auto block_rows = [](const char* more) {
    const std::string fp8 = fmt::format(R"({{"quant_method": "fp8"{}}})", more);
    const ModelConfig c =
        Parsed(Edited("mistral_small_4", {{"/quantization_config", fp8.c_str()}}));
    return c.quant.schemes.front().block_rows;
  };
  EXPECT_EQ(block_rows(R"(, "activation_scheme": "static", "weight_block_size": null)"),
            QuantScheme::kAll);
  EXPECT_EQ(block_rows(R"(, "activation_scheme": "static", "weight_block_size": [64, 32])"), 64);
  EXPECT_EQ(block_rows(R"(, "activation_scheme": "dynamic")"), 128);
  EXPECT_EQ(block_rows(""), 128);
}

TEST(ModelConfig, Mistral4ClassDefaultsFillAbsentKeys) {
  JsonOut json = Published("mistral_small_4");
  for (const char* key :
       {"q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "n_routed_experts",
        "num_experts_per_tok", "n_shared_experts", "moe_intermediate_size", "norm_topk_prob",
        "routed_scaling_factor", "first_k_dense_replace", "n_group", "topk_group", "rms_norm_eps",
        "rope_interleave"})
    json.erase(key);
  const ModelConfig c = Parsed(json);
  EXPECT_EQ(c.mla.qk(), 128);
  EXPECT_EQ(c.mla.v, 128);
  EXPECT_EQ(c.mla.cq, 1024);
  EXPECT_EQ(c.moe.experts, 128);
  EXPECT_EQ(c.moe.chosen, 4);
  EXPECT_EQ(c.moe.shared, 1);
  EXPECT_EQ(c.moe.width, 2048);
  EXPECT_TRUE(c.moe.normalize);
  EXPECT_EQ(c.moe.scale, 1.0);
  EXPECT_TRUE(c.IsMoe(0));
  EXPECT_EQ(c.norm_eps, 1e-6);
}

TEST(ModelConfig, ReadsTheTextPartOfAModelOfSeveralParts) {
  JsonOut text = Published("kimi_k2");
  text.erase("eos_token_id");
  text.erase("quantization_config");
  JsonOut json = {{"architectures", {"KimiK25ForConditionalGeneration"}},
                  {"model_type", "kimi_k25"},
                  {"eos_token_id", 163586},
                  {"quantization_config", {{"quant_method", "fp8"}}},
                  {"vision_config", {{"hidden_size", 1152}}},
                  {"text_config", text}};
  const ModelConfig c = Parsed(json);
  EXPECT_TRUE(c.wrapped);
  EXPECT_EQ(c.model_type, "kimi_k2");
  EXPECT_EQ(c.moe.experts, 384);
  EXPECT_EQ(c.eos, Ids{163586});
  EXPECT_EQ(&c.quant.format(), &kFp8Weights);
  ASSERT_EQ(UnusedFeatures(c).size(), 1u);
  EXPECT_NE(UnusedFeatures(c)[0].find("only the text part"), std::string::npos);
}

TEST(ModelConfig, V3ClassDefaultsFillAbsentKeys) {
  JsonOut json = Published("v3");
  for (const char* key : {"n_group",
                          "topk_group",
                          "num_experts_per_tok",
                          "n_routed_experts",
                          "n_shared_experts",
                          "moe_layer_freq",
                          "first_k_dense_replace",
                          "norm_topk_prob",
                          "scoring_func",
                          "topk_method",
                          "routed_scaling_factor",
                          "rms_norm_eps",
                          "rope_theta",
                          "attention_bias",
                          "q_lora_rank",
                          "tie_word_embeddings",
                          "num_nextn_predict_layers",
                          "hidden_act",
                          "bos_token_id",
                          "eos_token_id",
                          "rope_scaling",
                          "architectures"})
    json.erase(key);
  const ModelConfig c = Parsed(json);
  EXPECT_EQ(c.architecture, "DeepseekV3ForCausalLM");
  EXPECT_EQ(c.moe.groups, 8);
  EXPECT_EQ(c.moe.groups_kept, 4);
  EXPECT_EQ(c.moe.chosen, 8);
  EXPECT_EQ(c.moe.experts, 256);
  EXPECT_EQ(c.moe.shared, 1);
  EXPECT_EQ(c.moe.freq, 1);
  EXPECT_EQ(c.moe.first_dense, 3);
  EXPECT_TRUE(c.moe.normalize);
  EXPECT_EQ(c.moe.scoring, Scoring::kSigmoid);
  EXPECT_EQ(c.moe.router, Router::kNoauxTc);
  EXPECT_EQ(c.moe.scale, 2.5);
  EXPECT_EQ(c.norm_eps, 1e-6);
  EXPECT_EQ(c.rope.theta, 10000);
  EXPECT_FALSE(c.rope.yarn);
  EXPECT_FALSE(c.mla.bias);
  EXPECT_EQ(c.mla.cq, 1536);
  EXPECT_FALSE(c.tied_embeddings);
  EXPECT_EQ(c.mtp_layers, 0);
  EXPECT_EQ(c.bos, -1);
  EXPECT_TRUE(c.eos.empty());
}

TEST(ModelConfig, V2ClassDefaultsFillAbsentKeys) {
  JsonOut json = Published("v2");
  for (const char* key :
       {"n_group", "topk_group", "n_shared_experts", "moe_layer_freq", "first_k_dense_replace",
        "norm_topk_prob", "scoring_func", "topk_method", "routed_scaling_factor", "q_lora_rank",
        "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "moe_intermediate_size"})
    json.erase(key);
  const ModelConfig c = Parsed(json);
  EXPECT_EQ(c.moe.groups, 1);
  EXPECT_EQ(c.moe.groups_kept, 1);
  EXPECT_EQ(c.moe.shared, 0);
  EXPECT_EQ(c.moe.first_dense, 0);
  EXPECT_FALSE(c.moe.normalize);
  EXPECT_EQ(c.moe.scoring, Scoring::kSoftmax);
  EXPECT_EQ(c.moe.router, Router::kGreedy);
  EXPECT_EQ(c.moe.scale, 1.0);
  EXPECT_EQ(c.moe.width, 1407);
  EXPECT_EQ(c.mla.cq, 1536);
  EXPECT_EQ(c.mla.n, 128);
  EXPECT_EQ(c.mla.r, 64);
  EXPECT_EQ(c.mla.v, 128);
  json.erase("n_routed_experts");
  EXPECT_FALSE(Parsed(json).IsMoe(59));  // a dense model
}

TEST(ModelConfig, NullAndZeroMeanNone) {
  EXPECT_EQ(Parsed(Edited("v3", {{"/q_lora_rank", "0"}})).mla.cq, 0);
  EXPECT_EQ(Parsed(Edited("v3", {{"/q_lora_rank", "null"}})).mla.cq, 0);
  EXPECT_EQ(Parsed(Edited("v3", {{"/n_routed_experts", "null"}})).moe.experts, 0);
  EXPECT_EQ(Parsed(Edited("v3", {{"/n_shared_experts", "0"}})).moe.shared, 0);
  const ModelConfig c = Parsed(Edited("v3", {{"/n_group", "null"}, {"/topk_group", "null"}}));
  EXPECT_EQ(c.moe.groups, 1);
  EXPECT_EQ(c.moe.groups_kept, 1);
  EXPECT_EQ(Parsed(Edited("v2", {{"/n_group", "null"}, {"/topk_group", "null"}})).moe.groups, 1);
}

TEST(ModelConfig, GreedyRoutersMayBeMisspeltAsDeepseekDoes) {
  for (const char* model : {"v2", "v2_lite", "v3"}) {
    const ModelConfig greedy = Parsed(Edited(model, {{"/topk_method", "\"greedy\""}}));
    const ModelConfig gready = Parsed(Edited(model, {{"/topk_method", "\"gready\""}}));
    EXPECT_EQ(gready.moe.router, Router::kGreedy) << model;
    EXPECT_EQ(gready.moe.groups, greedy.moe.groups) << model;
    EXPECT_EQ(gready.moe.chosen, greedy.moe.chosen) << model;
  }
}

TEST(ModelConfig, GreedyRoutersHaveNoGroups) {
  EXPECT_EQ(Parsed(Edited("v2_lite", {{"/n_group", "7"}})).moe.groups, 1);
}

TEST(ModelConfig, MoeLayersFollowFirstDenseAndFreq) {
  const ModelConfig c =
      Parsed(Edited("v3", {{"/first_k_dense_replace", "3"}, {"/moe_layer_freq", "2"}}));
  EXPECT_FALSE(c.IsMoe(2));
  EXPECT_FALSE(c.IsMoe(3));
  EXPECT_TRUE(c.IsMoe(4));
  EXPECT_FALSE(Parsed(Edited("v3", {{"/first_k_dense_replace", "61"}})).IsMoe(60));
}

TEST(ModelConfig, IgnoresWhatItNeedNotKnow) {
  const ModelConfig c = Parsed(Edited("v3", {{"/auto_map/AutoModel", "\"evil.py\""},  // C15
                                             {"/head_dim", "7"},
                                             {"/num_key_value_heads", "\"?\""},
                                             {"/unknown", "[1]"}}));  // C16
  EXPECT_EQ(c.mla.qk(), 192);
  EXPECT_EQ(Parsed(Edited("v3", {{"/max_position_embeddings", "1000000000000"}})).max_position,
            1'000'000'000'000);  // C10: only the cache limits the context
}

TEST(ModelConfig, ReadsFlags) {
  EXPECT_FALSE(Parsed(Edited("v3", {{"/mla_use_nope", "true"}})).rope.rotate);
  EXPECT_EQ(Parsed(Edited("v3", {{"/mla_use_nope", "true"}, {"/qk_rope_head_dim", "7"}})).mla.r, 7);
  EXPECT_FALSE(Parsed(Edited("v3", {{"/rope_interleave", "false"}})).rope.interleaved);
  EXPECT_TRUE(Parsed(Edited("v3", {{"/attention_bias", "true"}})).mla.bias);
  EXPECT_TRUE(Parsed(Edited("v3", {{"/tie_word_embeddings", "true"}})).tied_embeddings);
}

TEST(ModelConfig, StopTokensAreOneAListOrNone) {
  EXPECT_EQ(Parsed(Edited("v3", {{"/eos_token_id", "[1, 5, 1]"}})).eos, (Ids{1, 5}));
  EXPECT_TRUE(Parsed(Edited("v3", {{"/eos_token_id", "null"}})).eos.empty());
  EXPECT_EQ(Parsed(Edited("v3", {{"/bos_token_id", "[7, 8]"}})).bos, 7);
  EXPECT_EQ(Parsed(Edited("v3", {{"/bos_token_id", "null"}})).bos, -1);
}

TEST(Rope, BothSpellingsMeanTheSame) {
  const char* kNested = R"({"rope_theta": 777, "rope_type": "yarn", "factor": 4,
      "original_max_position_embeddings": 128, "beta_fast": 8, "beta_slow": 2, "mscale": 0.5,
      "mscale_all_dim": 0.25, "truncate": false, "attention_factor": 1.5})";
  const ModelConfig nested = Parsed(Edited("v3", {{"/rope_parameters", kNested}}));
  EXPECT_TRUE(nested.rope.yarn);
  EXPECT_EQ(nested.rope.theta, 777);
  EXPECT_EQ(nested.rope.factor, 4);
  EXPECT_EQ(nested.rope.original_max, 128);
  EXPECT_EQ(nested.rope.beta_fast, 8);
  EXPECT_EQ(nested.rope.beta_slow, 2);
  EXPECT_EQ(nested.rope.mscale, 0.5);
  EXPECT_EQ(nested.rope.mscale_all_dim, 0.25);
  EXPECT_FALSE(nested.rope.truncate);
  EXPECT_EQ(nested.rope.attention_factor, 1.5);
  const ModelConfig old =
      Parsed(Edited("v3", {{"/rope_scaling", kNested}, {"/rope_theta", "777"}}));
  EXPECT_EQ(old.rope.factor, 4);
  EXPECT_EQ(old.rope.theta, 777);
}

TEST(Rope, NestedParametersWinAndTheRestFallsBack) {
  const ModelConfig plain = Parsed(
      Edited("v3", {{"/rope_parameters", R"({"rope_type": "default", "rope_theta": 5e4})"}}));
  EXPECT_FALSE(plain.rope.yarn);
  EXPECT_EQ(plain.rope.theta, 50000);
  const ModelConfig mixed = Parsed(Edited("v3", {{"/rope_parameters", R"({"factor": 8})"}}));
  EXPECT_TRUE(mixed.rope.yarn);
  EXPECT_EQ(mixed.rope.factor, 8);
  EXPECT_EQ(mixed.rope.theta, 10000);
}

// Mistral's files say with an attention_factor of 1 that YaRN changes the frequencies only.
TEST(Rope, AttentionFactorOfOneTakesMistralsMscaleOffTheScores) {
  EXPECT_EQ(Parsed(Published("mistral_small_4")).rope.mscale_all_dim, 1);
  const ModelConfig plain =
      Parsed(Edited("mistral_small_4", {{"/rope_parameters/attention_factor", "1.0"}}));
  EXPECT_EQ(plain.rope.mscale_all_dim, 0);
  EXPECT_EQ(plain.rope.attention_factor, 1);
  const ModelConfig other =
      Parsed(Edited("mistral_small_4", {{"/rope_parameters/attention_factor", "1.5"}}));
  EXPECT_EQ(other.rope.mscale_all_dim, 1);
  const ModelConfig v3 = Parsed(Edited("v3", {{"/rope_scaling/attention_factor", "1.0"}}));
  EXPECT_EQ(v3.rope.mscale_all_dim, 1);
}

TEST(Rope, OnlyMistralHasAQueryTemperature) {
  const ModelConfig v3 = Parsed(Edited("v3", {{"/rope_scaling/llama_4_scaling_beta", "0.1"}}));
  EXPECT_EQ(v3.rope.query_beta, 0);
}

TEST(Rope, YarnDefaultsAreThoseOfDeepseek) {
  const ModelConfig c = Parsed(
      Edited("v3", {{"/rope_scaling",
                     R"({"type": "yarn", "factor": 2, "original_max_position_embeddings": 9})"}}));
  EXPECT_EQ(c.rope.beta_fast, 32);
  EXPECT_EQ(c.rope.beta_slow, 1);
  EXPECT_EQ(c.rope.mscale, 1);
  EXPECT_EQ(c.rope.mscale_all_dim, 0);
}

}  // namespace
}  // namespace latte::model_config_test
