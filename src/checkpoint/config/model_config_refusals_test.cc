// The configs that ParseModelConfig refuses, and the messages.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/base/file.h"
#include "src/base/json_out.h"
#include "src/checkpoint/config/model_config.h"

namespace latte::model_config_refusals_test {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

JsonOut Published(const std::string& name) {
  const auto text =
      ReadFile(fmt::format("{}/tests/data/configs/{}.json", LATTE_SOURCE_DIR, name), 1 << 20);
  if (!text) ADD_FAILURE() << text.error().message;
  return JsonOut::parse(text.value_or("{}"));
}

// Parses `json`, which must fail with `code` and with `words` in a one-line message.
void ExpectRefused(const JsonOut& json, Code code, const std::string& words) {
  const auto config = Json::Parse(Dump(json), "config.json").and_then(ParseModelConfig);
  ASSERT_FALSE(config.has_value()) << "accepted; expected: " << words;
  EXPECT_EQ(config.error().code, code) << config.error().message;
  EXPECT_PRED2(Contains, config.error().message, words);
  EXPECT_PRED2(Contains, config.error().message, "config.json");
  EXPECT_FALSE(Contains(config.error().message, "\n"));
}

// A published config with one changed key: JSON pointer, new value, expected part of the message.
struct BadKey {
  const char* model;
  const char* pointer;
  const char* value;
  const char* words;
};

JsonOut Changed(const BadKey& bad) {
  JsonOut json = Published(bad.model);
  json[JsonOut::json_pointer(bad.pointer)] = JsonOut::parse(bad.value);
  return json;
}

TEST(ModelConfigRefusals, C01_EveryRequiredKey) {
  for (const char* key : {"hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size",
                          "intermediate_size", "max_position_embeddings", "qk_nope_head_dim",
                          "qk_rope_head_dim", "v_head_dim", "moe_intermediate_size"}) {
    JsonOut json = Published("v3");
    json.erase(key);
    ExpectRefused(json, Code::kCorrupt, fmt::format("key '{}' is missing", key));
    json[key] = nullptr;
    ExpectRefused(json, Code::kCorrupt, fmt::format("key '{}' is missing", key));
  }
  JsonOut v2 = Published("v2");
  v2.erase("num_experts_per_tok");
  ExpectRefused(v2, Code::kCorrupt, "key 'num_experts_per_tok' is missing");
  for (const char* key : {"factor", "original_max_position_embeddings"}) {
    JsonOut json = Published("v3");
    json["rope_scaling"].erase(key);
    ExpectRefused(json, Code::kCorrupt,
                  fmt::format("config.json: 'rope_scaling': key '{}' is missing", key));
  }
  JsonOut nameless = Published("v3");
  nameless.erase("model_type");
  nameless.erase("architectures");
  ExpectRefused(nameless, Code::kCorrupt, "key 'model_type' is missing");
}

TEST(ModelConfigRefusals, C02_WrongTypes) {
  const JsonOut good = Published("v3");
  for (const char* key : {"hidden_size",
                          "num_attention_heads",
                          "num_hidden_layers",
                          "vocab_size",
                          "intermediate_size",
                          "max_position_embeddings",
                          "q_lora_rank",
                          "kv_lora_rank",
                          "qk_nope_head_dim",
                          "qk_rope_head_dim",
                          "v_head_dim",
                          "n_routed_experts",
                          "n_shared_experts",
                          "num_experts_per_tok",
                          "moe_intermediate_size",
                          "n_group",
                          "topk_group",
                          "first_k_dense_replace",
                          "moe_layer_freq",
                          "num_nextn_predict_layers",
                          "bos_token_id",
                          "eos_token_id"})
    for (const char* value : {"\"64\"", "1.5", "true", "{}", "1e308", "9223372036854775808"}) {
      JsonOut json = good;
      json[key] = JsonOut::parse(value);
      ExpectRefused(json, Code::kCorrupt, fmt::format("'{}': expected an integer", key));
    }
  for (const char* key : {"rms_norm_eps", "rope_theta", "routed_scaling_factor"}) {
    JsonOut json = good;
    json[key] = "1";
    ExpectRefused(json, Code::kCorrupt, fmt::format("'{}': expected a number", key));
  }
  for (const char* key : {"attention_bias", "tie_word_embeddings", "norm_topk_prob",
                          "rope_interleave", "mla_use_nope", "use_mla"}) {
    JsonOut json = good;
    json[key] = 1;
    ExpectRefused(json, Code::kCorrupt, fmt::format("'{}': expected true or false", key));
  }
  for (const char* key : {"model_type", "hidden_act", "scoring_func", "topk_method"}) {
    JsonOut json = good;
    json[key] = 1;
    ExpectRefused(json, Code::kCorrupt, fmt::format("'{}': expected a string", key));
  }
  for (const char* key : {"rope_scaling", "rope_parameters", "quantization_config"}) {
    JsonOut json = good;
    json[key] = "x";
    ExpectRefused(json, Code::kCorrupt, fmt::format("'{}': expected an object", key));
  }
  JsonOut json = good;
  json["architectures"] = "DeepseekV3ForCausalLM";
  ExpectRefused(json, Code::kCorrupt, "'architectures': expected a list");
  json["architectures"] = {3};
  ExpectRefused(json, Code::kCorrupt, "'architectures.0': expected a string");
}

TEST(ModelConfigRefusals, C03_C04_C05_SizesOutOfRange) {
  const JsonOut good = Published("v3");
  for (const char* key : {"hidden_size", "num_attention_heads", "num_hidden_layers", "vocab_size",
                          "intermediate_size", "max_position_embeddings", "qk_nope_head_dim",
                          "qk_rope_head_dim", "v_head_dim", "num_experts_per_tok",
                          "moe_intermediate_size", "n_group", "topk_group", "moe_layer_freq"})
    for (const int64_t value : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
      JsonOut json = good;
      json[key] = value;
      ExpectRefused(json, Code::kCorrupt, fmt::format("'{}': expected an integer from 1 to", key));
    }
  for (const char* key : {"q_lora_rank", "kv_lora_rank", "n_routed_experts", "n_shared_experts",
                          "first_k_dense_replace", "num_nextn_predict_layers"})
    for (const int64_t value : {int64_t{-1}, INT64_MAX}) {
      JsonOut json = good;
      json[key] = value;
      ExpectRefused(json, Code::kCorrupt, fmt::format("'{}': expected an integer from 0 to", key));
    }
}

TEST(ModelConfigRefusals, KeysThatContradictOneAnother) {
  const BadKey kCases[] = {
      {"v3", "/qk_rope_head_dim", "63", "'qk_rope_head_dim': expected an even number, found 63"},
      {"v3", "/n_group", "7", "'n_group': expected a divisor of n_routed_experts (256), found 7"},
      {"v2", "/n_group", "7", "'n_group': expected a divisor of n_routed_experts (160), found 7"},
      {"v3", "/topk_group", "9", "'topk_group': expected an integer from 1 to 8, found 9"},
      {"v3", "/num_experts_per_tok", "257", "from 1 to 256, found 257"},
      {"v3", "/num_experts_per_tok", "129", "'num_experts_per_tok': expected at most 128"},
      {"v3", "/n_routed_experts", "8", "at least 2 of the 8 experts in each group"},
      {"v3", "/first_k_dense_replace", "62", "from 0 to 61, found 62"},
      {"v3", "/num_hidden_layers", "2", "'first_k_dense_replace': expected an integer from 0 to 2"},
      {"v3", "/bos_token_id", "129280", "'bos_token_id': expected a token id below vocab_size"},
      {"v3", "/eos_token_id", "-1", "'eos_token_id': expected a token id below vocab_size"},
      {"v3", "/eos_token_id", "[1, 129280]", "'eos_token_id.1': expected a token id"},
      {"v3", "/eos_token_id", "[\"1\"]", "'eos_token_id.0': expected an integer"},
      {"v3", "/rms_norm_eps", "0", "'rms_norm_eps': expected a number from"},
      {"v3", "/rms_norm_eps", "-1e-6", "'rms_norm_eps': expected a number from"},
      {"v3", "/routed_scaling_factor", "0", "'routed_scaling_factor': expected a number from"},
      {"v3", "/scoring_func", "\"tanh\"", "expected softmax or sigmoid, found tanh"},
      {"v3", "/scoring_func", "\"a\\nb\"", "found a\\x0ab"},
      {"v3", "/topk_method", "\"best\"", "greedy, group_limited_greedy or noaux_tc, found best"},
      {"v3", "/rope_theta", "0", "'rope_theta': expected a number from 2"},
      {"v3", "/rope_theta", "-5", "'rope_theta': expected a number from 2"},
      {"v3", "/rope_scaling/factor", "0", "'rope_scaling.factor': expected a number from 1"},
      {"v3", "/rope_scaling/factor", "-40", "'rope_scaling.factor': expected a number from 1"},
      {"v3", "/rope_scaling/factor", "\"40\"", "'rope_scaling.factor': expected a number"},
      {"v3", "/rope_scaling/original_max_position_embeddings", "0",
       "'rope_scaling.original_max_position_embeddings': expected an integer from 1"},
      {"v3", "/rope_scaling/beta_fast", "0.5", "expected at least beta_slow (1), found 0.5"},
      {"v3", "/rope_scaling/beta_slow", "0", "'rope_scaling.beta_slow': expected a number from"},
      {"v3", "/rope_scaling/mscale", "-1", "'rope_scaling.mscale': expected a number from 0"},
      {"v3", "/rope_scaling/mscale_all_dim", "1e9", "'rope_scaling.mscale_all_dim': expected"},
      {"v3", "/rope_scaling/attention_factor", "0", "'rope_scaling.attention_factor': expected"},
      {"v3", "/rope_scaling/truncate", "1", "'rope_scaling.truncate': expected true or false"},
      {"v3", "/rope_parameters", R"({"factor": -1})", "'rope_parameters.factor'"},
  };
  for (const BadKey& bad : kCases) {
    SCOPED_TRACE(fmt::format("{} {}", bad.pointer, bad.value));
    ExpectRefused(Changed(bad), Code::kCorrupt, bad.words);
  }
}

TEST(ModelConfigRefusals, ClassDefaultsAreCheckedToo) {
  JsonOut json = Published("v3");
  json.erase("first_k_dense_replace");
  json["num_hidden_layers"] = 2;
  ExpectRefused(json, Code::kCorrupt, "'first_k_dense_replace': expected 0 to 2");
  JsonOut few = Published("v3");
  few.erase("num_experts_per_tok");
  few["n_routed_experts"] = 4;
  few["topk_method"] = "greedy";
  ExpectRefused(few, Code::kCorrupt, "'num_experts_per_tok': expected at most 4");
}

TEST(ModelConfigRefusals, C20_ModelsTooLargeToCount) {
  JsonOut json = Published("v3");
  json["n_routed_experts"] = 65536;
  ExpectRefused(json, Code::kCorrupt, "at most 333333 experts in 61 layers");
  JsonOut wide = Published("v3");
  wide["hidden_size"] = 1 << 20;
  wide["num_attention_heads"] = 1 << 16;
  wide["v_head_dim"] = 1 << 16;
  wide["num_hidden_layers"] = 1000;
  ExpectRefused(wide, Code::kCorrupt, "a model of at most 1e+18 parameters");
}

TEST(ModelConfigRefusals, C06_WhatIsNotMla) {
  for (const char* value : {"0", "null"})
    ExpectRefused(Changed({"v2", "/kv_lora_rank", value, ""}), Code::kUnsupported,
                  "not MLA (plain multi-head attention)");
  JsonOut absent = Published("v2");
  absent.erase("kv_lora_rank");
  ExpectRefused(absent, Code::kUnsupported, "not MLA (plain multi-head attention)");
  ExpectRefused(Changed({"v2", "/use_mla", "false", ""}), Code::kUnsupported, "use_mla: false");
}

// A compressed-tensors config with one changed key.
std::string Compressed(const char* pointer, const char* value) {
  JsonOut json =
      JsonOut::parse(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int",
      "strategy": "group", "group_size": 32, "symmetric": true}, "input_activations": null}}})");
  json[JsonOut::json_pointer(pointer)] = JsonOut::parse(value);
  return Dump(json);
}

TEST(ModelConfigRefusals, C21_QuantisedWeightsThatAreNotRead) {
  const std::string weights = "/config_groups/group_0/weights/";
  const std::pair<std::string, const char*> kCases[] = {
      {Compressed("/format", "\"nvfp4-pack-quantized\""), "format: expected int-quantized or"},
      {Compressed((weights + "num_bits").c_str(), "3"), "num_bits: expected 4 or 8, found 3"},
      {Compressed((weights + "type").c_str(), "\"float\""), "type: expected int, found 'float'"},
      {Compressed((weights + "strategy").c_str(), "\"block\""), "strategy: expected channel or"},
      {Compressed("/config_groups/group_0/format", "\"float-quantized\""), "'float-quantized'"},
      {Compressed("/config_groups/group_0/input_activations", R"({"dynamic": false})"), "dynamic"},
      {Compressed("/kv_cache_scheme", R"({"num_bits": 8})"), "kv_cache_scheme"},
      {R"({"quant_method": "awq", "bits": 8, "group_size": 64})", "bits: expected 4, found 8"},
      {R"({"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemv"})", "'gemv'"},
      {R"({"quant_method": "gptq", "bits": 3, "group_size": 64})", "bits: expected 4, found 3"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 64, "lm_head": true})", "lm_head"},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 64, "checkpoint_format": "marlin"})",
       "checkpoint_format: expected gptq or gptq_v2"},
  };
  for (const auto& [value, words] : kCases)
    ExpectRefused(Changed({"v3", "/quantization_config", value.c_str(), ""}), Code::kUnsupported,
                  words);
  const std::pair<std::string, const char*> kBroken[] = {
      {R"({"quant_method": "compressed-tensors"})", "format"},
      {R"({"quant_method": "compressed-tensors", "format": "int-quantized"})", "config_groups"},
      {Compressed("/config_groups", "{}"), "at least one group"},
      {Compressed("/config_groups", "[4]"), "at least one group"},
      {Compressed("/config_groups/group_0/weights", "4"), "num_bits"},
      {Compressed((weights + "group_size").c_str(), "0"), "found 0"},
      {Compressed((weights + "group_size").c_str(), "7"), "found 7"},
      {Compressed((weights + "group_size").c_str(), "null"), "group_size"},
      {R"({"quant_method": "gptq", "bits": 4})", "group_size"},
      {R"({"quant_method": "gptq", "bits": "4", "group_size": 64})", "bits"},
  };
  for (const auto& [value, words] : kBroken)
    ExpectRefused(Changed({"v3", "/quantization_config", value.c_str(), ""}), Code::kCorrupt,
                  words);
}

TEST(ModelConfigRefusals, WhatIsNotSupportedYet) {
  const BadKey kCases[] = {
      {"v3", "/quantization_config", R"({"quant_method": "modelopt"})",
       "a copy quantised by NVIDIA ModelOpt"},  // C13
      {"v3", "/quantization_config", R"({"quant_method": "newest"})",
       "'newest' checkpoints are not supported"},
      {"v3", "/quantization_config", "{}", "'unnamed' checkpoints are not supported"},
      {"v3", "/quantization_config", R"({"quant_method": "fp8", "fmt": "e5m2"})", "found 'e5m2'"},
      {"v3", "/index_topk", "2048", "'index_topk'"},
      {"v3", "/hidden_act", "\"gelu\"", "'hidden_act': expected silu, found 'gelu'"},
      {"v3", "/rope_scaling/type", "\"linear\"", "expected yarn or default, found 'linear'"},
      {"v3", "/rope_scaling/rope_type", "\"longrope\"", "found 'longrope'"},
  };
  for (const BadKey& bad : kCases) {
    SCOPED_TRACE(bad.pointer);
    ExpectRefused(Changed(bad), Code::kUnsupported, bad.words);
  }
}

// Without its key, a wrong temperature would only show beyond the original context.
TEST(ModelConfigRefusals, Mistral4NeedsTheKeysOfItsQueryTemperature) {
  const auto rope = [](const char* key, const char* value) {
    JsonOut json = Published("mistral_small_4");
    if (value == nullptr)
      json["rope_parameters"].erase(key);
    else
      json["rope_parameters"][key] = JsonOut::parse(value);
    return json;
  };
  ExpectRefused(rope("llama_4_scaling_beta", nullptr), Code::kCorrupt, "'llama_4_scaling_beta'");
  ExpectRefused(rope("llama_4_scaling_beta", "-0.1"), Code::kCorrupt, "llama_4_scaling_beta");
  ExpectRefused(rope("original_max_position_embeddings", "0"), Code::kCorrupt,
                "original_max_position_embeddings");
  JsonOut none = rope("rope_type", "\"default\"");
  none["rope_parameters"].erase("original_max_position_embeddings");
  ExpectRefused(none, Code::kCorrupt, "original_max_position_embeddings");
}

struct Refused {
  const char* type;
  const char* architecture;
  const char* words;
};

TEST(ModelConfigRefusals, C12_OtherArchitecturesByNameWithTheReason) {
  const Refused kCases[] = {
      {"deepseek_v3", "DeepseekV32ForCausalLM", "no supported model"},
      {"deepseek_v32", "DeepseekV3ForCausalLM", "no supported model"},
      {"mistral", "MistralForCausalLM", "it is not MLA"},
      {"hy_v4", nullptr, "output gates"},
      {"axk2", "AXK2ForCausalLM", "gated norms"},
      {"longcat_flash", "LongcatFlashForCausalLM", "two attention blocks"},
      {"kimi_linear", "KimiLinearForCausalLM", "linear-attention layers"},
      {"deepseek_vl_v2", "DeepseekOCRForCausalLM", "it is not MLA"},
      {"deepseek_v4", "DeepseekV4ForCausalLM", "it is not MLA"},
      {"deepseek_v4", nullptr, "'deepseek_v4' is not supported: it is not MLA"},
      {nullptr, "DeepseekV4ForCausalLM", "it is not MLA"},
      {"glm4_moe", "Glm4MoeForCausalLM", "it is not MLA"},
      {"llama", "LlamaForCausalLM", "'llama LlamaForCausalLM' is not supported: no supported"},
      {"deepseek_v3", "DeepseekV3ForSequenceClassification", "no supported model"},
      {"deepseek_v2", "DeepseekV3ForCausalLM", "no supported model"},
      {"a\nb", nullptr, "a\\x0ab"},
  };
  for (const Refused& refused : kCases) {
    SCOPED_TRACE(refused.words);
    JsonOut json = Published("v3");
    json.erase("model_type");
    json.erase("architectures");
    if (refused.type != nullptr) json["model_type"] = refused.type;
    if (refused.architecture != nullptr) json["architectures"] = {refused.architecture};
    ExpectRefused(json, Code::kUnsupported, refused.words);
    ExpectRefused(json, Code::kUnsupported,
                  "supported: deepseek_v2 (DeepseekV2ForCausalLM), deepseek_v3 "
                  "(DeepseekV3ForCausalLM), kimi_k2 (DeepseekV3ForCausalLM)");
  }
}

TEST(ModelConfigRefusals, LayerListsAndIndexers) {
  const BadKey kCases[] = {
      {"v3", "/mlp_layer_types", R"(["dense"])", "a list of 61 (num_hidden_layers) words"},
      {"v3", "/mlp_layer_types", "7", "'mlp_layer_types': expected a list"},
      {"youtu", "/n_routed_experts", "-1", "'n_routed_experts'"},
      {"v3_2", "/index_n_heads", "0", "'index_n_heads'"},
      {"v3_2", "/index_head_dim", "63", "at least qk_rope_head_dim (64), found 63"},
      {"v3_2", "/q_lora_rank", "null", "'q_lora_rank': expected a query latent"},
      {"glm_5", "/index_topk_pattern", R"("FS")", "78 (num_hidden_layers) letters F or S"},
      {"glm_5", "/indexer_types", R"(["full"])", "a list of 78"},
      {"glm_5", "/index_topk_freq", "0", "'index_topk_freq'"},
  };
  for (const BadKey& bad : kCases) {
    SCOPED_TRACE(bad.pointer);
    ExpectRefused(Changed(bad), Code::kCorrupt, bad.words);
  }
}

TEST(ModelConfigRefusals, WrappersWithoutATextModel) {
  JsonOut json = {{"architectures", {"KimiVLForConditionalGeneration"}}, {"model_type", "kimi_vl"}};
  ExpectRefused(json, Code::kCorrupt, "key 'text_config' is missing");
  json["text_config"] = nullptr;
  ExpectRefused(json, Code::kCorrupt, "'text_config' is null");
  json["text_config"] = {{"model_type", "kimi_vl"}};
  ExpectRefused(json, Code::kUnsupported, "one that wraps another");
  json["text_config"] = {{"model_type", "qwen3"}};
  ExpectRefused(json, Code::kUnsupported, "'qwen3' is not supported");
  json["text_config"] = Published("v3");
  json["text_config"].erase("kv_lora_rank");
  ExpectRefused(json, Code::kUnsupported, "not MLA");
}

TEST(ModelConfigRefusals, ATextPartThatIsNoObject) {
  const std::pair<const char*, const char*> kCases[] = {
      {"3", "found a number"},
      {R"("deepseek_v3")", "found a string"},
      {R"([{"model_type": "deepseek_v3"}])", "found a list"},
      {"true", "found true or false"},
  };
  for (const char* key : {"text_config", "language_config"})
    for (const auto& [value, found] : kCases) {
      SCOPED_TRACE(fmt::format("{}: {}", key, value));
      JsonOut wrapper = {{"architectures", {"KimiVLForConditionalGeneration"}},
                         {"model_type", "kimi_vl"}};
      JsonOut text_model = Published("v3");
      for (JsonOut* json : {&wrapper, &text_model}) {
        (*json)[key] = JsonOut::parse(value);
        ExpectRefused(*json, Code::kCorrupt, fmt::format("'{}': expected an object", key));
        ExpectRefused(*json, Code::kCorrupt, found);
      }
    }
}

TEST(ModelConfigRefusals, Fp8BlockSizesAreChecked) {
  for (const char* quantization : {R"({"quant_method": "fp8", "weight_block_size": [128]})",
                                   R"({"quant_method": "fp8", "weight_block_size": 128})",
                                   R"({"quant_method": "fp8", "weight_block_size": [0, 128]})",
                                   R"({"quant_method": "fp8", "weight_block_size": [128, -1]})",
                                   R"({"quant_method": "fp8", "weight_block_size": [128, "x"]})"})
    ExpectRefused(Changed(BadKey{"v3", "/quantization_config", quantization, ""}), Code::kCorrupt,
                  "weight_block_size");
}

}  // namespace
}  // namespace latte::model_config_refusals_test
