#include "src/checkpoint/expected_tensors.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/checkpoint/config/foreign_quant.h"
#include "src/checkpoint/formats/formats.h"
#include "src/checkpoint/quant_tensors.h"
#include "src/tensor/tensor.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr size_t kNamedInMessage = 10;

// Collects names of tensors under a prefix.
class Names {
 public:
  Names(std::string prefix, std::vector<ExpectedTensor>& out)
      : prefix_(std::move(prefix)), out_(out) {}

  Names Under(std::string_view part) const { return {fmt::format("{}{}.", prefix_, part), out_}; }
  void Add(std::string_view name, std::vector<int64_t> shape, bool required = true) const {
    out_.push_back({fmt::format("{}{}", prefix_, name), std::move(shape), required});
  }

 private:
  std::string prefix_;
  std::vector<ExpectedTensor>& out_;
};

void AddMlp(const Names& names, int64_t d, int64_t width) {
  names.Add("gate_proj.weight", {width, d});
  names.Add("up_proj.weight", {width, d});
  names.Add("down_proj.weight", {d, width});
}

void AddAttention(const Names& names, const MlaDims& m, bool split_kv_b) {
  const int64_t q_rows = m.h * m.qk();
  if (m.cq > 0) {
    names.Add("q_a_proj.weight", {m.cq, m.d});
    if (m.bias) names.Add("q_a_proj.bias", {m.cq});
    names.Add("q_a_layernorm.weight", {m.cq});
    names.Add("q_b_proj.weight", {q_rows, m.cq});
  } else {
    names.Add("q_proj.weight", {q_rows, m.d});
  }
  names.Add("kv_a_proj_with_mqa.weight", {m.latent(), m.d});
  if (m.bias) names.Add("kv_a_proj_with_mqa.bias", {m.latent()});
  names.Add("kv_a_layernorm.weight", {m.c});
  if (split_kv_b) {
    names.Add("k_b_proj.weight", {m.h, m.c, m.n});
    names.Add("v_b_proj.weight", {m.h, m.v, m.c});
  } else {
    names.Add("kv_b_proj.weight", {m.h * (m.n + m.v), m.c});
  }
  names.Add("o_proj.weight", {m.d, m.h * m.v});
  if (m.bias) names.Add("o_proj.bias", {m.d});
}

void AddIndexer(const Names& names, const IndexerDims& indexer, const MlaDims& m) {
  names.Add("wq_b.weight", {indexer.heads * indexer.width, m.cq});
  names.Add("wk.weight", {indexer.width, m.d});
  names.Add("k_norm.weight", {indexer.width});
  names.Add("k_norm.bias", {indexer.width});
  names.Add("weights_proj.weight", {indexer.heads, m.d});
}

void AddMoeTensors(const Names& names, const MoeDims& moe, int64_t d, ExpertLayout layout) {
  names.Add("gate.weight", {moe.experts, d});
  if (moe.router == Router::kNoauxTc)
    names.Add("gate.e_score_correction_bias", {moe.experts}, !moe.bias_optional);
  const Names experts = names.Under("experts");
  if (layout == ExpertLayout::kFused) {
    experts.Add("gate_up_proj", {moe.experts, 2 * moe.width, d});
    experts.Add("down_proj", {moe.experts, d, moe.width});
  } else if (layout == ExpertLayout::kStacked) {
    experts.Add("gate_proj", {moe.experts, moe.width, d});
    experts.Add("up_proj", {moe.experts, moe.width, d});
    experts.Add("down_proj", {moe.experts, d, moe.width});
  } else {
    for (int64_t e = 0; e < moe.experts; ++e)
      AddMlp(experts.Under(fmt::format("{}", e)), d, moe.width);
  }
  if (moe.shared > 0) AddMlp(names.Under("shared_experts"), d, moe.shared * moe.width);
}

void AddLayer(const Names& names, const ModelConfig& config, int64_t layer,
              const LayerLayout& layout) {
  const int64_t d = config.mla.d;
  names.Add("input_layernorm.weight", {d});
  AddAttention(names.Under("self_attn"), config.mla, layout.split_kv_b);
  if (config.IsIndexed(layer))
    AddIndexer(names.Under("self_attn.indexer"), config.indexer, config.mla);
  names.Add("post_attention_layernorm.weight", {d});
  if (config.IsMoe(layer))
    AddMoeTensors(names.Under("mlp"), config.moe, d, layout.experts);
  else
    AddMlp(names.Under("mlp"), d, config.dense_width);
  // Released files of A.X-K1 contain the norm for dense layers too, which do not use it.
  if (config.moe.post_norm) names.Add("post_mlp_layernorm.weight", {d}, config.IsMoe(layer));
}

// Recognises unknown tensors that the decoder does not need.
class SetAside {
 public:
  SetAside(const ModelConfig& config, const StoredTensors& tensors)
      : config_(config), tensors_(tensors) {}

  bool operator()(std::string_view name) const {
    for (const char* end : {".rotary_emb.inv_freq", "_proj.activation_scale",
                            "_proj_with_mqa.activation_scale", "_proj_activation_scale"})
      if (name.ends_with(end)) return true;
    // GGUF files have the factors of LongRoPE as tensors, which are read with the config.
    if (!config_.rope.pair_factors.empty() && name.starts_with("rope_factors_")) return true;
    constexpr std::string_view kPrefix = "model.layers.", kIndexer = ".self_attn.indexer.";
    if (!name.starts_with(kPrefix)) return false;
    const std::string_view rest = name.substr(kPrefix.size());
    int64_t layer = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    if (error != std::errc() || layer < 0) return false;
    // Some GGUF files of GLM-5.2 have indexers on layers that attend to the keys of another one.
    if (config_.indexer.heads > 0 && !config_.IsIndexed(layer))
      return rest.substr(static_cast<size_t>(end - rest.data())).starts_with(kIndexer);
    if (layer < config_.layers) return false;
    // Tensors that only an MTP layer has. Cut or quantised copies may lack some of them.
    constexpr const char* kOwn[] = {"eh_proj", "enorm", "hnorm", "shared_head.norm"};
    return std::ranges::any_of(kOwn, [&](const char* own) {
      return tensors_.contains(fmt::format("{}{}.{}.weight", kPrefix, layer, own));
    });
  }

 private:
  const ModelConfig& config_;
  const StoredTensors& tensors_;
};

// The first few differences of one kind, described in words, and their number.
struct Differences {
  size_t count = 0;
  std::string text;

  void Add(const std::string& one) {
    if (++count > kNamedInMessage) return;
    text += (count == 1 ? "" : ", ") + one;
  }
  std::string Describe(std::string_view what) const {
    return fmt::format("{} {}: {}{}", count, what, text, count > kNamedInMessage ? ", …" : "");
  }
};

// The stored tensors that represent one expected tensor.
std::vector<MatrixTensor> StoredAs(const ExpectedTensor& want, const ModelConfig& config,
                                   const StoredTensors& tensors) {
  const bool is_matrix = want.shape.size() > 1;
  if (IsProjection(want.name) || (is_matrix && config.quant.format().everywhere))
    return FindMatrix(config.quant, want.name, want.shape, tensors).tensors;
  return kPlainWeights.tensors({want.name, want.shape}, {}).tensors;
}

std::string Join(const Differences& missing, const Differences& extra, const Differences& shapes) {
  std::string out;
  const auto append = [&](const Differences& kind, std::string_view what) {
    if (kind.count > 0) out += (out.empty() ? "" : "; ") + kind.Describe(what);
  };
  append(missing, "missing");
  append(extra, "unexpected");
  append(shapes, "of another shape");
  return out;
}

}  // namespace

LayerLayout FindLayerLayout(const StoredTensors& tensors) {
  // A quantised stack has the same name with an ending.
  const auto any = [&](std::string_view part) {
    return std::ranges::any_of(tensors, [part](const auto& tensor) {
      return tensor.first.find(part) != std::string::npos;
    });
  };
  LayerLayout out;
  if (any(".mlp.experts.gate_up_proj"))
    out.experts = ExpertLayout::kFused;
  else if (any(".mlp.experts.gate_proj"))
    out.experts = ExpertLayout::kStacked;
  out.split_kv_b = any(".self_attn.k_b_proj.");
  return out;
}

bool IsProjection(std::string_view name) {
  for (const char* end : {".indexer.weights_proj.weight", ".eh_proj.weight"})
    if (name.ends_with(end)) return false;
  for (const char* end :
       {"_proj.weight", "_proj_with_mqa.weight", ".indexer.wq_b.weight", ".indexer.wk.weight",
        ".experts.gate_up_proj", ".experts.gate_proj", ".experts.up_proj", ".experts.down_proj"})
    if (name.ends_with(end)) return true;
  return false;
}

std::vector<ExpectedTensor> ExpectedTensors(const ModelConfig& config, const LayerLayout& layout) {
  std::vector<ExpectedTensor> out;
  const int64_t d = config.mla.d;
  const Names root("", out);
  const Names model = root.Under("model");
  model.Add("embed_tokens.weight", {config.vocab, d});
  for (int64_t i = 0; i < config.layers; ++i)
    AddLayer(model.Under("layers").Under(fmt::format("{}", i)), config, i, layout);
  model.Add("norm.weight", {d});
  root.Add("lm_head.weight", {config.vocab, d}, !config.tied_embeddings);
  return out;
}

std::vector<ExpectedTensor> ExpectedMtpTensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> out;
  const int64_t d = config.mla.d;
  for (int64_t i = config.layers; i < config.layers + config.mtp_layers; ++i) {
    const Names layer(fmt::format("model.layers.{}.", i), out);
    for (const char* norm : {"enorm.weight", "hnorm.weight", "shared_head.norm.weight"})
      layer.Add(norm, {d});
    layer.Add("eh_proj.weight", {d, 2 * d});
    AddLayer(layer, config, i, {});
  }
  return out;
}

Status CheckTensors(const ModelConfig& config, const StoredTensors& tensors) {
  const std::vector<ExpectedTensor> expected = ExpectedTensors(config, FindLayerLayout(tensors));
  Differences missing;
  Differences shapes;
  Differences dtypes;
  std::unordered_set<std::string> known;
  known.reserve(expected.size());
  for (const ExpectedTensor& want : expected)
    for (const MatrixTensor& part : StoredAs(want, config, tensors)) {
      known.insert(part.name);
      const auto found = tensors.find(part.name);
      if (found == tensors.end()) {
        if (want.required && part.required) missing.Add(fmt::format("'{}'", part.name));
        continue;
      }
      const StoredTensor& have = found->second;
      if (have.shape != part.shape)
        shapes.Add(fmt::format("tensor '{}': expected {}, found {}", part.name,
                               ShapeString(part.shape), ShapeString(have.shape)));
      if (std::find(part.dtypes.begin(), part.dtypes.end(), have.dtype_name) == part.dtypes.end())
        dtypes.Add(fmt::format("'{}' is {}", part.name, have.dtype_name));
    }
  Differences extra;
  const SetAside set_aside(config, tensors);
  for (const auto& tensor : tensors) {
    if (known.contains(tensor.first) || set_aside(tensor.first)) continue;
    if (const auto tool = ToolOfTensor(tensor.first))
      return Unsupported(
          fmt::format("the checkpoint holds tensors as {} writes them ('{}'), a quantisation that "
                      "is not read; {}",
                      *tool, Printable(tensor.first), CopyToTake()));
    extra.Add(fmt::format("'{}'", Printable(tensor.first)));
  }

  const bool is_gguf = config.quant.format().everywhere;
  if (missing.count + extra.count + shapes.count > 0)
    return Corrupt(fmt::format(
        "the tensors do not fit {}: {}; expected the tensors of {} with {} layers{}",
        is_gguf ? "the metadata" : "config.json", Join(missing, extra, shapes), config.architecture,
        config.layers, is_gguf ? "; take another copy of the model" : ""));
  if (dtypes.count > 0)
    return Unsupported(dtypes.Describe("tensors have a dtype that is not read there"));
  return {};
}

}  // namespace latte
