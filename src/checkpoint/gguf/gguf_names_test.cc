#include "src/checkpoint/gguf/gguf_names.h"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace latte::gguf_names_test {
namespace {

std::set<std::string> Named(std::initializer_list<const char*> names) {
  StoredTensors tensors;
  for (const char* name : names) tensors[name] = {};
  UseNamesOfGguf(tensors);
  std::set<std::string> out;
  for (const auto& [name, tensor] : tensors) out.insert(name);
  return out;
}

using Names = std::set<std::string>;

TEST(GgufNames, TensorsHaveTheNamesOfDeepseeksCheckpoints) {
  const std::map<const char*, const char*> names = {
      {"token_embd.weight", "model.embed_tokens.weight"},
      {"output_norm.weight", "model.norm.weight"},
      {"output.weight", "lm_head.weight"},
      {"blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"},
      {"blk.12.attn_q_a.bias", "model.layers.12.self_attn.q_a_proj.bias"},
      {"blk.1.attn_k_b.weight", "model.layers.1.self_attn.k_b_proj.weight"},
      {"blk.1.ffn_gate_inp.weight", "model.layers.1.mlp.gate.weight"},
      {"blk.1.exp_probs_b.bias", "model.layers.1.mlp.gate.e_score_correction_bias"},
      {"blk.1.ffn_up_exps.weight", "model.layers.1.mlp.experts.up_proj"},
      {"blk.1.ffn_down.17.weight", "model.layers.1.mlp.experts.17.down_proj.weight"},
      {"blk.1.ffn_down_shexp.weight", "model.layers.1.mlp.shared_experts.down_proj.weight"},
      {"blk.61.nextn.eh_proj.weight", "model.layers.61.eh_proj.weight"},
      {"blk.3.indexer.k_norm.bias", "model.layers.3.self_attn.indexer.k_norm.bias"},
  };
  for (const auto& [gguf, common] : names) EXPECT_EQ(Named({gguf}), Names{common});
}

TEST(GgufNames, UnknownNamesStay) {
  for (const char* name : {"blk.0.attn_sinks.weight", "blk.x.attn_q.weight", "blk.0", "rope_freqs",
                           "rope_freqs.weight", "blk.0.ffn_gate.x.weight", "", "blk.", "."})
    EXPECT_EQ(Named({name}), Names{name});
}

TEST(GgufNames, NoTensorTakesTheNameOfAnother) {
  EXPECT_EQ(Named({"output.weight", "lm_head.weight"}), (Names{"output.weight", "lm_head.weight"}));
}

TEST(GgufNames, KvBInThreeTensorsIsReadFromOne) {
  EXPECT_EQ(Named({"blk.0.attn_kv_b.weight", "blk.0.attn_k_b.weight", "blk.0.attn_v_b.weight",
                   "blk.1.attn_k_b.weight"}),
            (Names{"model.layers.0.self_attn.kv_b_proj.weight",
                   "model.layers.1.self_attn.k_b_proj.weight"}));
}

}  // namespace
}  // namespace latte::gguf_names_test
