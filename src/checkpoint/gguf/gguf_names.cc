#include "src/checkpoint/gguf/gguf_names.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "src/base/strings.h"

namespace latte {
namespace {

struct GgufName {
  std::string_view gguf, common;
};

// Tensors of the whole model.
constexpr GgufName kModelNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};

// Tensors of a layer, whose names end with .weight or .bias.
constexpr GgufName kLayerNames[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_q_a", "self_attn.q_a_proj"},
    {"attn_q_a_norm", "self_attn.q_a_layernorm"},
    {"attn_q_b", "self_attn.q_b_proj"},
    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    {"attn_kv_b", "self_attn.kv_b_proj"},
    {"attn_k_b", "self_attn.k_b_proj"},
    {"attn_v_b", "self_attn.v_b_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"indexer.attn_q_b", "self_attn.indexer.wq_b"},
    {"indexer.attn_k", "self_attn.indexer.wk"},
    {"indexer.k_norm", "self_attn.indexer.k_norm"},
    {"indexer.proj", "self_attn.indexer.weights_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
    {"nextn.eh_proj", "eh_proj"},
    {"nextn.enorm", "enorm"},
    {"nextn.hnorm", "hnorm"},
    {"nextn.embed_tokens", "embed_tokens"},
    {"nextn.shared_head_norm", "shared_head.norm"},
    {"nextn.shared_head_head", "shared_head.head"},
};

// Whole names of a layer.
constexpr GgufName kWholeLayerNames[] = {
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    {"ffn_gate_exps.weight", "mlp.experts.gate_proj"},
    {"ffn_up_exps.weight", "mlp.experts.up_proj"},
    {"ffn_down_exps.weight", "mlp.experts.down_proj"},
    {"ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
};

template <size_t kCount>
std::string_view CommonName(const GgufName (&names)[kCount], std::string_view gguf) {
  const auto* const found = std::ranges::find(names, gguf, &GgufName::gguf);
  return found == std::end(names) ? std::string_view() : found->common;
}

// "ffn_gate.7.weight" of older files: an expert in a tensor of its own.
std::string NameOfExpert(std::string_view stem) {
  const size_t dot = stem.rfind('.');
  if (dot == std::string_view::npos || !IsDigits(stem.substr(dot + 1))) return "";
  const std::string_view matrix = stem.substr(0, dot);
  for (const std::string_view known : {"gate", "up", "down"})
    if (matrix == fmt::format("ffn_{}", known))
      return fmt::format("mlp.experts.{}.{}_proj", stem.substr(dot + 1), known);
  return "";
}

// Within the layer; empty: unknown.
std::string NameInLayer(std::string_view name) {
  if (const std::string_view whole = CommonName(kWholeLayerNames, name); !whole.empty())
    return std::string(whole);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return "";
  const std::string_view stem = name.substr(0, dot);
  const std::string_view common = CommonName(kLayerNames, stem);
  const std::string found = common.empty() ? NameOfExpert(stem) : std::string(common);
  return found.empty() ? "" : fmt::format("{}{}", found, name.substr(dot));
}

// `name` itself if it is unknown.
std::string NameOfGguf(const std::string& name) {
  std::string_view rest = name;
  if (!rest.starts_with("blk.")) {
    const size_t dot = rest.rfind('.');
    if (dot == std::string_view::npos) return name;
    const std::string_view common = CommonName(kModelNames, rest.substr(0, dot));
    return common.empty() ? name : fmt::format("{}{}", common, rest.substr(dot));
  }
  rest.remove_prefix(4);
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos || !IsDigits(rest.substr(0, dot))) return name;
  const std::string in_layer = NameInLayer(rest.substr(dot + 1));
  return in_layer.empty() ? name : fmt::format("model.layers.{}.{}", rest.substr(0, dot), in_layer);
}

}  // namespace

void UseNamesOfGguf(StoredTensors& tensors) {
  StoredTensors named;
  for (auto& [name, tensor] : tensors) {
    const std::string common = NameOfGguf(name);
    named.emplace(tensors.contains(common) ? name : common, std::move(tensor));
  }
  for (auto it = named.begin(); it != named.end();) {
    const std::string& name = it->first;
    bool repeats = false;
    for (const std::string_view part : {"k_b_proj.weight", "v_b_proj.weight"})
      if (name.ends_with(part))
        repeats = named.contains(name.substr(0, name.size() - part.size()) + "kv_b_proj.weight");
    it = repeats ? named.erase(it) : std::next(it);
  }
  tensors = std::move(named);
}

}  // namespace latte
