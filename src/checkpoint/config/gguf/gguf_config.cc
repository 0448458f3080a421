#include "src/checkpoint/config/gguf/gguf_config.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "src/base/json_out.h"
#include "src/base/strings.h"
#include "src/checkpoint/config/gguf/gguf_architecture.h"
#include "src/checkpoint/config/gguf/gguf_keys.h"
#include "src/checkpoint/config/gguf/gguf_minicpm3.h"
#include "src/checkpoint/formats/formats.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr int64_t kGlmFlashVocab = 154'880;

// What several keys follow from.
struct ModelShape {
  int64_t experts = 0;  // 0: every layer is dense
  bool sigmoid = false;
  bool kimi_k2 = false;    // among the files of deepseek2
  bool glm_flash = false;  // the same
};

bool HasIndexer(const GgufKeys& in) {
  return in.architecture() == kDeepseek32 || in.architecture() == kGlmDsa;
}

// Sizes of the whole model.
Status ReadSizes(const GgufKeys& in, const StoredTensors& tensors, JsonOut& json) {
  const auto embedding = tensors.find("token_embd.weight");
  const int64_t rows = embedding == tensors.end() ? 0 : embedding->second.shape.front();
  LATTE_ASSIGN_OR_RETURN(const int64_t vocab, in.IntOr("vocab_size", rows));
  json["vocab_size"] = vocab;
  LATTE_ASSIGN_OR_RETURN(const int64_t blocks, in.Int("block_count"));
  // GLM-4.7-Flash has 47 layers and one for drafts; some of its files do not say which is which.
  const bool drafts = in.architecture() == kDeepseek2 && vocab == kGlmFlashVocab && blocks == 48;
  LATTE_ASSIGN_OR_RETURN(const int64_t drafting, in.IntOr("nextn_predict_layers", drafts ? 1 : 0));
  if (drafting >= blocks)
    return in.Bad("nextn_predict_layers", fmt::format("fewer than block_count ({})", blocks),
                  fmt::format("{}", drafting));
  json["num_hidden_layers"] = blocks - drafting;
  json["num_nextn_predict_layers"] = drafting;
  LATTE_ASSIGN_OR_RETURN(json["max_position_embeddings"], in.Int("context_length"));
  LATTE_ASSIGN_OR_RETURN(json["hidden_size"], in.Int("embedding_length"));
  LATTE_ASSIGN_OR_RETURN(json["intermediate_size"], in.Int("feed_forward_length"));
  LATTE_ASSIGN_OR_RETURN(json["rms_norm_eps"], in.Number("attention.layer_norm_rms_epsilon"));
  json["tie_word_embeddings"] = !tensors.contains("output.weight");
  return {};
}

// Sizes of attention. Newer files describe the absorbed form by key_length and value_length, and
// the heads by the keys with _mla; older files describe the heads by the former and lack the
// latter.
Status ReadAttention(const GgufKeys& in, const StoredTensors& tensors, JsonOut& json) {
  LATTE_ASSIGN_OR_RETURN(json["num_attention_heads"], in.Int("attention.head_count"));
  LATTE_ASSIGN_OR_RETURN(json["kv_lora_rank"], in.Int("attention.kv_lora_rank"));
  json["q_lora_rank"] = nullptr;
  if (!tensors.contains("blk.0.attn_q.weight")) {
    LATTE_ASSIGN_OR_RETURN(json["q_lora_rank"], in.Int("attention.q_lora_rank"));
  }
  const std::string form = in.Has("attention.key_length_mla") ? "_mla" : "";
  LATTE_ASSIGN_OR_RETURN(const int64_t width, in.Int("attention.key_length" + form));
  // Of minicpm3 it is the hidden size over the heads, as in its config.json.
  if (in.architecture() != kMiniCpm3Gguf || in.Has("attention.value_length" + form)) {
    LATTE_ASSIGN_OR_RETURN(json["v_head_dim"], in.Int("attention.value_length" + form));
  }
  LATTE_ASSIGN_OR_RETURN(const int64_t rotated, in.Int("rope.dimension_count"));
  if (width <= rotated)
    return in.Bad("attention.key_length" + form,
                  fmt::format("more than rope.dimension_count ({})", rotated),
                  fmt::format("{}", width));
  json["qk_nope_head_dim"] = width - rotated;
  json["qk_rope_head_dim"] = rotated;
  return {};
}

Result<ModelShape> ReadShape(const GgufKeys& in, const JsonOut& json) {
  const bool deepseek2 = in.architecture() == kDeepseek2;
  ModelShape shape;
  shape.glm_flash = deepseek2 && json["vocab_size"] == kGlmFlashVocab;
  LATTE_ASSIGN_OR_RETURN(shape.experts, in.IntOr("expert_count", 0));
  LATTE_ASSIGN_OR_RETURN(const std::string_view split, in.Global("tokenizer.ggml.pre"));
  shape.kimi_k2 = deepseek2 && split == "kimi-k2" && shape.experts == 384;
  constexpr int64_t kNone = 0, kSoftmax = 1, kSigmoid = 2;
  LATTE_ASSIGN_OR_RETURN(int64_t scoring, in.IntOr("expert_gating_func", kNone));
  if (scoring == kNone && shape.experts > 0)
    scoring = shape.glm_flash || HasIndexer(in) ? kSigmoid : kSoftmax;
  if (scoring > kSigmoid)
    return Unsupported(fmt::format(
        "{}: expected 1 (softmax) or 2 (sigmoid), found {}; take the safetensors copy of the model",
        in.Where("expert_gating_func"), scoring));
  shape.sigmoid = scoring == kSigmoid;
  return shape;
}

// The groups of experts of the published models of a shape: files that older programs wrote lack
// them. {1, 1}: none.
std::pair<int64_t, int64_t> GroupsOfShape(const GgufKeys& in, const ModelShape& shape) {
  if (in.architecture() == kGlmDsa || in.architecture() == kMistral4) return {1, 1};
  if (shape.sigmoid && (shape.experts == 256 || shape.experts == 192)) return {8, 4};
  if (!shape.sigmoid && shape.experts == 160) return {8, 3};
  return {1, 1};
}

Status ReadGroups(const GgufKeys& in, const ModelShape& shape, JsonOut& json,
                  std::vector<std::string>& assumed) {
  auto [groups, kept] = GroupsOfShape(in, shape);
  if (in.Has("expert_group_count") || in.Has("expert_group_used_count")) {
    LATTE_ASSIGN_OR_RETURN(groups, in.Int("expert_group_count"));
    LATTE_ASSIGN_OR_RETURN(kept, in.Int("expert_group_used_count"));
  } else if (groups > 1) {
    assumed.push_back(
        fmt::format("the file does not say how its {} experts are grouped: {} groups are taken, of "
                    "which a token uses {}, as in the published models with {} experts; files with "
                    "the key {}.expert_group_count say it",
                    shape.experts, groups, kept, shape.experts, in.architecture()));
  }
  json["n_group"] = groups;
  json["topk_group"] = kept;
  if (in.architecture() == kMistral4) return {};  // its class has one method
  json["topk_method"] = shape.sigmoid ? "noaux_tc" : groups > 1 ? "group_limited_greedy" : "greedy";
  return {};
}

Status ReadExperts(const GgufKeys& in, const ModelShape& shape, JsonOut& json,
                   std::vector<std::string>& assumed) {
  json["n_routed_experts"] = nullptr;
  if (shape.experts == 0) return {};
  json["n_routed_experts"] = shape.experts;
  json["scoring_func"] = shape.sigmoid ? "sigmoid" : "softmax";
  json["moe_layer_freq"] = 1;
  LATTE_ASSIGN_OR_RETURN(json["num_experts_per_tok"], in.Int("expert_used_count"));
  LATTE_ASSIGN_OR_RETURN(json["n_shared_experts"], in.IntOr("expert_shared_count", 0));
  LATTE_ASSIGN_OR_RETURN(json["moe_intermediate_size"], in.Int("expert_feed_forward_length"));
  LATTE_ASSIGN_OR_RETURN(json["first_k_dense_replace"], in.Int("leading_dense_block_count"));
  LATTE_ASSIGN_OR_RETURN(json["norm_topk_prob"], in.BoolOr("expert_weights_norm", false));
  LATTE_ASSIGN_OR_RETURN(json["routed_scaling_factor"], in.NumberOr("expert_weights_scale", 1.0));
  return ReadGroups(in, shape, json, assumed);
}

// The file has 0.1·mscale_all_dim; mscale is the same in all published models.
Status ReadMscale(const GgufKeys& in, JsonOut& yarn, std::vector<std::string>& assumed) {
  constexpr std::string_view kKey = "rope.scaling.yarn_log_multiplier";
  LATTE_ASSIGN_OR_RETURN(double multiplier, in.NumberOr(kKey, 0.0));
  if (multiplier == 0.0)
    return Unsupported(fmt::format(
        "{}: expected 0.1 times mscale_all_dim of the model's config.json, found {}: how "
        "its attention scores are scaled is unknown; take a newer copy of the model",
        in.Where(kKey), in.Has(kKey) ? "0" : "no such key"));
  if (multiplier == 1.0) {
    multiplier = 0.1;
    assumed.push_back(
        fmt::format("{}: 1 is taken as 0.1, which newer files of the model have", in.Where(kKey)));
  }
  yarn["mscale"] = ShortDecimal(multiplier * 10);
  yarn["mscale_all_dim"] = yarn["mscale"];
  return {};
}

// The growth of mistral4's queries with the position. Converters of Hugging Face folders leave it
// out.
Status ReadQueryTemperature(const GgufKeys& in, JsonOut& yarn, std::vector<std::string>& assumed) {
  constexpr std::string_view kKey = "attention.temperature_scale";
  constexpr std::string_view kLength = "attention.temperature_length";
  constexpr double kPublished = 0.1;
  LATTE_ASSIGN_OR_RETURN(yarn["llama_4_scaling_beta"], in.NumberOr(kKey, kPublished));
  if (!in.Has(kKey))
    assumed.push_back(
        fmt::format("the file does not say how queries grow with the position: {} is taken, as in "
                    "the published Mistral-Small-4",
                    kPublished));
  const int64_t original = yarn["original_max_position_embeddings"].get<int64_t>();
  LATTE_ASSIGN_OR_RETURN(const int64_t length, in.IntOr(kLength, original));
  if (length == original) return {};
  return Unsupported(
      fmt::format("{}: expected rope.scaling.original_context_length ({}), found {}; take the "
                  "safetensors copy of the model",
                  in.Where(kLength), original, length));
}

Status ReadRope(const GgufKeys& in, const ModelShape& shape, JsonOut& json,
                std::vector<std::string>& assumed) {
  LATTE_ASSIGN_OR_RETURN(json["rope_theta"], in.Number("rope.freq_base"));
  LATTE_ASSIGN_OR_RETURN(const std::string_view type, in.StringOr("rope.scaling.type", "none"));
  json["rope_scaling"] = nullptr;
  const bool needs_yarn = in.architecture() == kMistral4;
  if (type == "none" && !needs_yarn) return {};
  if (type != "yarn")
    return Unsupported(
        fmt::format("{}: expected yarn{}, found '{}'; take the safetensors copy of the model",
                    in.Where("rope.scaling.type"), needs_yarn ? "" : " or none", Printable(type)));
  JsonOut yarn = {{"type", "yarn"}};
  LATTE_ASSIGN_OR_RETURN(yarn["factor"], in.Number("rope.scaling.factor"));
  LATTE_ASSIGN_OR_RETURN(yarn["original_max_position_embeddings"],
                         in.Int("rope.scaling.original_context_length"));
  const double usual_fast = shape.kimi_k2 ? 1.0 : 32.0;
  LATTE_ASSIGN_OR_RETURN(yarn["beta_fast"], in.NumberOr("rope.scaling.yarn_beta_fast", usual_fast));
  LATTE_ASSIGN_OR_RETURN(yarn["beta_slow"], in.NumberOr("rope.scaling.yarn_beta_slow", 1.0));
  if (shape.kimi_k2 && !in.Has("rope.scaling.yarn_beta_fast"))
    assumed.push_back(
        "the file does not say beta_fast of its YaRN scaling: 1 is taken, as in the published "
        "Kimi-K2");
  LATTE_RETURN_IF_ERROR(ReadMscale(in, yarn, assumed));
  if (needs_yarn) LATTE_RETURN_IF_ERROR(ReadQueryTemperature(in, yarn, assumed));
  json["rope_scaling"] = std::move(yarn);
  return {};
}

// GLM-5.2 and 5.3 choose keys on 21 of their 78 layers; their files may have indexers on all.
Status ReadIndexedLayers(const GgufKeys& in, JsonOut& json, std::vector<std::string>& assumed) {
  constexpr std::string_view kKey = "attention.indexer.types";
  constexpr int64_t kLongContext = 1'048'576, kPublishedLayers = 78;
  const int64_t layers = json["num_hidden_layers"].get<int64_t>();
  const bool long_context = json["max_position_embeddings"].get<int64_t>() >= kLongContext;
  json["index_share_for_mtp_iteration"] = long_context;  // changes drafts, not answers
  LATTE_ASSIGN_OR_RETURN(const std::optional<std::vector<bool>> full, in.Bools(kKey));
  if (full) {
    if (static_cast<int64_t>(full->size()) != layers)
      return in.Bad(kKey, fmt::format("{} values, one for each layer", layers),
                    fmt::format("{}", full->size()));
    JsonOut kinds = JsonOut::array();
    for (const bool owns : *full) kinds.push_back(owns ? "full" : "shared");
    json["indexer_types"] = std::move(kinds);
    return {};
  }
  if (!long_context) return {};
  if (layers != kPublishedLayers)
    return Unsupported(
        fmt::format("{}: expected true or false for each of the {} layers, found no such key: "
                    "which layers choose keys is known for files of GLM-5.2 and 5.3 with {} layers "
                    "only; take the safetensors copy of the model",
                    in.Where(kKey), layers, kPublishedLayers));
  json["index_topk_freq"] = 4;
  json["index_skip_topk_offset"] = 3;
  assumed.push_back(
      "the file does not say which layers choose keys: 0, 1, 2 and every fourth after it are "
      "taken, as in the published GLM-5.2");
  return {};
}

Status ReadIndexer(const GgufKeys& in, JsonOut& json, std::vector<std::string>& assumed) {
  if (!HasIndexer(in)) return {};
  LATTE_ASSIGN_OR_RETURN(json["index_n_heads"], in.Int("attention.indexer.head_count"));
  LATTE_ASSIGN_OR_RETURN(json["index_head_dim"], in.Int("attention.indexer.key_length"));
  LATTE_ASSIGN_OR_RETURN(json["index_topk"], in.Int("attention.indexer.top_k"));
  if (in.architecture() == kGlmDsa) return ReadIndexedLayers(in, json, assumed);
  return {};
}

// The tokens that end an answer: of a text, of a turn, of a message.
Status ReadTokens(const GgufKeys& in, JsonOut& json) {
  LATTE_ASSIGN_OR_RETURN(const std::optional<int64_t> bos,
                         in.GlobalInt("tokenizer.ggml.bos_token_id"));
  if (bos) json["bos_token_id"] = *bos;
  JsonOut ends = JsonOut::array();
  for (const std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"}) {
    LATTE_ASSIGN_OR_RETURN(const std::optional<int64_t> id, in.GlobalInt(key));
    if (id) ends.push_back(*id);
  }
  json["eos_token_id"] = std::move(ends);
  return {};
}

std::string_view FamilyOf(const GgufKeys& in, const ModelShape& shape) {
  if (in.architecture() == kDeepseek32) return "deepseek_v32";
  if (in.architecture() == kGlmDsa) return "glm_moe_dsa";
  if (in.architecture() == kMistral4) return "mistral4";
  if (in.architecture() == kMiniCpm3Gguf) return "minicpm3";
  if (shape.experts == 0) return "youtu";
  if (shape.glm_flash) return "glm4_moe_lite";
  if (shape.kimi_k2) return "kimi_k2";
  return shape.sigmoid ? "deepseek_v3" : "deepseek_v2";
}

// Copies of DeepSeek-V3.2 under this architecture have no indexer.
Status NoteMissingIndexer(const GgufKeys& in, std::vector<std::string>& assumed) {
  if (in.architecture() != kDeepseek2) return {};
  LATTE_ASSIGN_OR_RETURN(const std::string_view name, in.Global("general.name"));
  const std::string lowered = Lowered(name);
  if (lowered.find("v3.2") != std::string::npos || lowered.find("v3_2") != std::string::npos)
    assumed.push_back(
        "this copy of DeepSeek-V3.2 has no indexer: attention is dense, and answers differ from "
        "the "
        "published model's beyond 2048 tokens");
  return {};
}

}  // namespace

Result<ModelConfig> ParseGgufConfig(const GgufMetadata& metadata, const StoredTensors& tensors,
                                    const GgufTensorBytes& bytes) {
  LATTE_ASSIGN_OR_RETURN(const std::string architecture, GgufArchitecture(metadata));
  const GgufKeys in(metadata, architecture);
  JsonOut json;
  std::vector<std::string> assumed;
  LATTE_RETURN_IF_ERROR(ReadSizes(in, tensors, json));
  LATTE_RETURN_IF_ERROR(ReadAttention(in, tensors, json));
  LATTE_ASSIGN_OR_RETURN(const ModelShape shape, ReadShape(in, json));
  LATTE_RETURN_IF_ERROR(ReadExperts(in, shape, json, assumed));
  if (in.architecture() == kMiniCpm3Gguf)
    LATTE_RETURN_IF_ERROR(ReadMiniCpm3(in, tensors, bytes, json, assumed));
  else
    LATTE_RETURN_IF_ERROR(ReadRope(in, shape, json, assumed));
  LATTE_RETURN_IF_ERROR(ReadIndexer(in, json, assumed));
  LATTE_RETURN_IF_ERROR(ReadTokens(in, json));
  if (in.architecture() == kMiniCpm3Gguf) LATTE_RETURN_IF_ERROR(AddEndOfTurn(metadata, json));
  LATTE_RETURN_IF_ERROR(NoteMissingIndexer(in, assumed));
  json["model_type"] = FamilyOf(in, shape);
  const std::string text = Dump(json);
  LATTE_ASSIGN_OR_RETURN(const Json parsed,
                         Json::Parse(text, metadata.path() + ", its metadata as config.json"));
  LATTE_ASSIGN_OR_RETURN(ModelConfig config, WithAdvice(ParseModelConfig(parsed)));
  config.text_hash = XXH3_64bits(text.data(), text.size());
  config.assumed = std::move(assumed);
  config.quant.schemes = {{.format = &kGgufWeights}};
  return config;
}

}  // namespace latte
