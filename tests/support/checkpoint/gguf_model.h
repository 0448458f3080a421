// GGUF metadata of published models, from their config.json in tests/data/configs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/base/json.h"
#include "tests/support/checkpoint/gguf_writer.h"

namespace latte::testing_support {

inline Json PublishedConfig(const std::string& name) {
  const std::string path = fmt::format("{}/tests/data/configs/{}.json", LATTE_SOURCE_DIR, name);
  return Json::Parse(ReadFile(path, 1 << 20).value(), path).value();
}

// A model whose entries tests change before it is written.
struct GgufModel {
  std::map<std::string, std::string> entries;  // key → entry
  std::vector<std::string> tensors = {"token_embd.weight", "output.weight"};
  std::map<std::string, float> values;  // tensor → each of its values; 0 where it is not listed

  void U32(const std::string& key, int64_t value) {
    entries[key] = GgufU32Entry(key, static_cast<uint32_t>(value));
  }
  void F32(const std::string& key, double value) {
    entries[key] = GgufF32Entry(key, static_cast<float>(value));
  }
  void Text(const std::string& key, std::string_view value) {
    entries[key] = GgufTextEntry(key, value);
  }
  void Bool(const std::string& key, bool value) {
    entries[key] = GgufEntry(key, kGgufBool, value ? "\1" : std::string_view("\0", 1));
  }
  // The file; a tensor has eight values of F32.
  std::string Bytes() const {
    GgufImage image;
    for (const auto& [key, entry] : entries) image.entries.push_back(entry);
    for (const std::string& name : tensors)
      image.tensors.push_back(GgufTensorInfo(name, {8}, 0, 32 * image.tensors.size()));
    for (const std::string& name : tensors)
      for (int i = 0; i < 8; ++i)
        image.data += GgufNumber(values.contains(name) ? values.at(name) : 0);
    return image.Bytes();
  }
};

inline std::string GgufArchitectureOf(const Json& config) {
  const std::string type = config.GetStringOr("model_type", "").value();
  if (type == "deepseek_v32") return "deepseek32";
  if (type == "glm_moe_dsa") return "glm-dsa";
  return type == "mistral4" || type == "minicpm3" ? type : "deepseek2";
}

// The metadata that llama.cpp's converter writes for a config.json: heads as the keys with _mla,
// and none of the keys that only its newest versions write.
inline GgufModel ConvertedGguf(const Json& config) {
  GgufModel m;
  const std::string architecture = GgufArchitectureOf(config);
  const std::string a = architecture + ".";
  const bool has_drafts = architecture == "deepseek32" || architecture == "glm-dsa";
  const Json rope = config.Find("rope_parameters").value_or(config);
  const auto num = [&](const char* key) { return config.GetIntOr(key, 0).value(); };
  const auto real = [&](const char* key, double fallback) {
    return config.GetDoubleOr(key, fallback).value();
  };
  m.Text("general.architecture", architecture);
  m.Text("general.type", "model");
  m.Text("general.name", "A model");
  m.U32(a + "block_count",
        num("num_hidden_layers") + (has_drafts ? num("num_nextn_predict_layers") : 0));
  if (has_drafts) {
    m.U32(a + "nextn_predict_layers", num("num_nextn_predict_layers"));
    m.U32(a + "attention.indexer.head_count", num("index_n_heads"));
    m.U32(a + "attention.indexer.key_length", num("index_head_dim"));
    m.U32(a + "attention.indexer.top_k", num("index_topk"));
  }
  m.U32(a + "context_length", num("max_position_embeddings"));
  m.U32(a + "embedding_length", num("hidden_size"));
  m.U32(a + "feed_forward_length", num("intermediate_size"));
  m.U32(a + "vocab_size", num("vocab_size"));
  m.U32(a + "attention.head_count", num("num_attention_heads"));
  m.U32(a + "attention.head_count_kv", 1);
  m.F32(a + "attention.layer_norm_rms_epsilon", real("rms_norm_eps", 1e-6));
  m.U32(a + "attention.kv_lora_rank", num("kv_lora_rank"));
  m.U32(a + "attention.key_length", num("kv_lora_rank") + num("qk_rope_head_dim"));
  m.U32(a + "attention.value_length", num("kv_lora_rank"));
  m.U32(a + "attention.key_length_mla", num("qk_nope_head_dim") + num("qk_rope_head_dim"));
  m.U32(a + "attention.value_length_mla", num("v_head_dim"));
  m.U32(a + "rope.dimension_count", num("qk_rope_head_dim"));
  m.F32(a + "rope.freq_base", rope.GetDoubleOr("rope_theta", 0).value());
  if (num("q_lora_rank") > 0)
    m.U32(a + "attention.q_lora_rank", num("q_lora_rank"));
  else
    m.tensors.push_back("blk.0.attn_q.weight");
  if (num("n_routed_experts") > 0) {
    m.U32(a + "expert_count", num("n_routed_experts"));
    m.U32(a + "expert_used_count", num("num_experts_per_tok"));
    m.U32(a + "expert_shared_count", num("n_shared_experts"));
    m.U32(a + "expert_feed_forward_length", num("moe_intermediate_size"));
    m.U32(a + "leading_dense_block_count", num("first_k_dense_replace"));
    m.F32(a + "expert_weights_scale", real("routed_scaling_factor", 1));
    m.Bool(a + "expert_weights_norm", config.GetBoolOr("norm_topk_prob", false).value());
    m.U32(a + "expert_gating_func",
          config.GetStringOr("topk_method", "").value() == "noaux_tc" ? 2 : 1);
  }
  std::optional<Json> yarn = config.Find("rope_scaling");
  if (rope.GetStringOr("rope_type", "").value() == "yarn") yarn = rope;
  if (yarn) {
    m.Text(a + "rope.scaling.type", "yarn");
    m.F32(a + "rope.scaling.factor", yarn->GetDouble("factor").value());
    m.U32(a + "rope.scaling.original_context_length",
          yarn->GetInt("original_max_position_embeddings").value());
    m.F32(a + "rope.scaling.yarn_log_multiplier", 0.1 * yarn->GetDouble("mscale_all_dim").value());
  }
  if (config.GetBoolOr("tie_word_embeddings", false).value())
    m.tensors.erase(m.tensors.begin() + 1);
  if (config.Find("bos_token_id")) m.U32("tokenizer.ggml.bos_token_id", num("bos_token_id"));
  const Json eos = config.Find("eos_token_id").value();
  const char* ends[] = {"eos", "eot", "eom"};
  for (size_t i = 0; i < eos.size(); ++i)
    m.U32(fmt::format("tokenizer.ggml.{}_token_id", ends[i]),
          (eos.is_array() ? eos.At(i) : eos).AsInt().value());
  return m;
}

inline GgufModel PublishedGguf(const std::string& name) {
  GgufModel m = ConvertedGguf(PublishedConfig(name));
  if (name == "kimi_k2" || name == "moonlight") m.Text("tokenizer.ggml.pre", "kimi-k2");
  return m;
}

}  // namespace latte::testing_support
