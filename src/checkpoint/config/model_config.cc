#include "src/checkpoint/config/model_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <xxhash.h>

#include "src/base/file.h"
#include "src/checkpoint/config/config_layers.h"
#include "src/checkpoint/config/config_reader.h"
#include "src/checkpoint/config/gguf/gguf_config.h"
#include "src/checkpoint/config/model_family.h"
#include "src/checkpoint/config/rope_config.h"
#include "src/checkpoint/gguf/gguf.h"
#include "src/text/tokenizer.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

// Far above every published model; still, the product of a few of them cannot overflow.
constexpr IntRange kHidden = {1, int64_t{1} << 20};
constexpr IntRange kHeads = {1, int64_t{1} << 16};
constexpr IntRange kHeadWidth = {1, int64_t{1} << 16};
constexpr IntRange kMlpWidth = {1, int64_t{1} << 24};
constexpr IntRange kVocab = {1, INT32_MAX};  // token ids are 32-bit
constexpr IntRange kLayers = {1, 10'000};
constexpr IntRange kExperts = {0, int64_t{1} << 16};
constexpr IntRange kMaxPosition = {1, int64_t{1} << 40};
constexpr NumberRange kEps = {1e-12, 1.0};
constexpr NumberRange kScale = {1e-9, 1e9};

// L·E: with three tensors each, the most that Checkpoint opens.
constexpr int64_t kMaxExpertBlocks = 333'333;
constexpr double kMaxParams = 1.0e18;  // at eight bytes each, the total still fits an int64
constexpr int64_t kMaxConfigBytes = 16 << 20;

// The keys under which a multi-part model keeps the config of its text part.
constexpr std::string_view kTextKeys[] = {"text_config", "language_config"};

Status CheckIsMla(const Json& config) {
  const ConfigReader in(config);
  LATTE_ASSIGN_OR_RETURN(const bool use_mla, in.BoolOr("use_mla", true));
  LATTE_ASSIGN_OR_RETURN(const int64_t rank, in.IntOr("kv_lora_rank", {0, kHidden.max}, 0));
  if (use_mla && rank > 0) return {};
  return Unsupported(fmt::format(
      "{}: not MLA (plain multi-head attention): expected kv_lora_rank above 0{}, found {}",
      config.path(), use_mla ? "" : " and use_mla not false", use_mla ? "none" : "use_mla: false"));
}

bool HasScales(const ClassDefaults& family) { return family.scales.embedding > 0; }

Result<MlaDims> ParseMla(const ConfigReader& in, const ClassDefaults& family) {
  const MlaDims& defaults = family.mla;
  MlaDims mla;
  LATTE_ASSIGN_OR_RETURN(mla.d, in.Int("hidden_size", kHidden));
  LATTE_ASSIGN_OR_RETURN(mla.h, in.Int("num_attention_heads", kHeads));
  LATTE_ASSIGN_OR_RETURN(mla.cq, in.IntOrNone("q_lora_rank", {0, kHidden.max}, defaults.cq));
  LATTE_ASSIGN_OR_RETURN(mla.c, in.Int("kv_lora_rank", kHidden));
  LATTE_ASSIGN_OR_RETURN(mla.n, in.IntOrDefault("qk_nope_head_dim", kHeadWidth, defaults.n));
  LATTE_ASSIGN_OR_RETURN(mla.r, in.IntOrDefault("qk_rope_head_dim", kHeadWidth, defaults.r));
  const int64_t v = HasScales(family) ? mla.d / mla.h : defaults.v;  // as MiniCPM's class
  LATTE_ASSIGN_OR_RETURN(mla.v, in.IntOrDefault("v_head_dim", kHeadWidth, v));
  LATTE_ASSIGN_OR_RETURN(mla.bias, in.BoolOr("attention_bias", false));
  return mla;
}

// The constants of MiniCPM's classes. null stands for no scaling.
Result<StateScales> ParseScales(const ConfigReader& in, const ClassDefaults& family, int64_t layers,
                                int64_t d) {
  StateScales scales;
  if (!HasScales(family)) return scales;
  LATTE_ASSIGN_OR_RETURN(scales.embedding,
                         in.NumberOr("scale_emb", kScale, family.scales.embedding));
  if (!in.IsNull("scale_depth")) {
    LATTE_ASSIGN_OR_RETURN(const double depth,
                           in.NumberOr("scale_depth", kScale, family.scales.depth));
    scales.residual = depth / std::sqrt(static_cast<double>(layers));
  }
  if (!in.IsNull("dim_model_base")) {
    LATTE_ASSIGN_OR_RETURN(const int64_t width,
                           in.IntOr("dim_model_base", kHidden, family.scales.base_width));
    scales.head = static_cast<double>(width) / static_cast<double>(d);
  }
  return scales;
}

Status ParseRouter(const ConfigReader& in, const MoeDims& defaults, MoeDims& moe) {
  LATTE_ASSIGN_OR_RETURN(const std::string method, in.StringOr("topk_method", ""));
  moe.router = defaults.router;
  // "gready" is a misspelt default of DeepSeek's own config class.
  if (method == "greedy" || method == "gready")
    moe.router = Router::kGreedy;
  else if (method == "group_limited_greedy")
    moe.router = Router::kGroupLimitedGreedy;
  else if (method == "noaux_tc")
    moe.router = Router::kNoauxTc;
  else if (!method.empty())
    return in.Bad("topk_method", "greedy, group_limited_greedy or noaux_tc", method);
  LATTE_ASSIGN_OR_RETURN(const std::string scoring, in.StringOr("scoring_func", ""));
  moe.scoring = defaults.scoring;
  if (scoring == "softmax")
    moe.scoring = Scoring::kSoftmax;
  else if (scoring == "sigmoid")
    moe.scoring = Scoring::kSigmoid;
  else if (!scoring.empty())
    return in.Bad("scoring_func", "softmax or sigmoid", scoring);
  LATTE_ASSIGN_OR_RETURN(moe.normalize, in.BoolOr("norm_topk_prob", defaults.normalize));
  LATTE_ASSIGN_OR_RETURN(moe.scale, in.NumberOr("routed_scaling_factor", kScale, defaults.scale));
  moe.scale_normalized = defaults.scale_normalized;
  moe.bias_optional = defaults.bias_optional;
  moe.post_norm = defaults.post_norm;
  return {};
}

// Groups of experts, and the number of experts that a token can choose from.
Status ParseChoice(const ConfigReader& in, const MoeDims& defaults, MoeDims& moe) {
  LATTE_ASSIGN_OR_RETURN(moe.chosen,
                         in.IntOrDefault("num_experts_per_tok", {1, moe.experts}, defaults.chosen));
  if (moe.router != Router::kGreedy) {  // greedy routing ignores groups
    LATTE_ASSIGN_OR_RETURN(const int64_t groups,
                           in.IntOrNone("n_group", {1, moe.experts}, defaults.groups));
    moe.groups = std::max<int64_t>(groups, 1);
    const int64_t kept_default = std::min(defaults.groups_kept, moe.groups);
    LATTE_ASSIGN_OR_RETURN(const int64_t kept,
                           in.IntOrNone("topk_group", {1, moe.groups}, kept_default));
    moe.groups_kept = std::max<int64_t>(kept, 1);
  }
  if (moe.experts % moe.groups != 0)
    return in.Bad("n_group", fmt::format("a divisor of n_routed_experts ({})", moe.experts),
                  fmt::format("{}", moe.groups));
  const int64_t group_size = moe.experts / moe.groups;
  if (moe.router == Router::kNoauxTc && moe.groups > 1 && group_size < 2)
    return in.Bad("n_group", fmt::format("at least 2 of the {} experts in each group", moe.experts),
                  fmt::format("{}", moe.groups));
  if (moe.chosen > moe.groups_kept * group_size)
    return in.Bad("num_experts_per_tok",
                  fmt::format("at most {} (topk_group·n_routed_experts/n_group)",
                              moe.groups_kept * group_size),
                  fmt::format("{}", moe.chosen));
  return {};
}

Result<MoeDims> ParseMoe(const ConfigReader& in, const MoeDims& defaults, int64_t layers) {
  MoeDims moe;
  LATTE_ASSIGN_OR_RETURN(moe.experts, in.IntOrNone("n_routed_experts", kExperts, defaults.experts));
  if (moe.experts == 0) return moe;
  if (moe.experts * layers > kMaxExpertBlocks)
    return in.Bad("n_routed_experts",
                  fmt::format("at most {} experts in {} layers", kMaxExpertBlocks, layers),
                  fmt::format("{} per layer", moe.experts));
  LATTE_ASSIGN_OR_RETURN(moe.shared, in.IntOrNone("n_shared_experts", {0, 1024}, defaults.shared));
  LATTE_ASSIGN_OR_RETURN(moe.width,
                         in.IntOrDefault("moe_intermediate_size", kMlpWidth, defaults.width));
  LATTE_ASSIGN_OR_RETURN(moe.first_dense,
                         in.IntOr("first_k_dense_replace", {0, layers}, defaults.first_dense));
  if (moe.first_dense > layers)
    return in.Bad("first_k_dense_replace", fmt::format("0 to {} (num_hidden_layers)", layers),
                  fmt::format("none, which stands for {}", moe.first_dense));
  LATTE_ASSIGN_OR_RETURN(moe.freq, in.IntOr("moe_layer_freq", {1, kLayers.max}, defaults.freq));
  LATTE_RETURN_IF_ERROR(ParseRouter(in, defaults, moe));
  LATTE_RETURN_IF_ERROR(ParseChoice(in, defaults, moe));
  return moe;
}

// Refuses the indexer's keys if the family has no indexer.
Result<IndexerDims> ParseIndexer(const ConfigReader& in, const ClassDefaults& defaults,
                                 const MlaDims& mla) {
  IndexerDims indexer;
  if (defaults.indexer.heads == 0) {
    if (!in.Find("index_topk")) return indexer;
    return Unsupported(
        fmt::format("{}: expected no indexer in this architecture, found one; deepseek_v32 and "
                    "glm_moe_dsa have one",
                    in.Find("index_topk")->path()));
  }
  LATTE_ASSIGN_OR_RETURN(indexer.heads,
                         in.IntOrDefault("index_n_heads", kHeads, defaults.indexer.heads));
  LATTE_ASSIGN_OR_RETURN(indexer.width,
                         in.IntOrDefault("index_head_dim", kHeadWidth, defaults.indexer.width));
  LATTE_ASSIGN_OR_RETURN(indexer.topk,
                         in.IntOrDefault("index_topk", kMaxPosition, defaults.indexer.topk));
  LATTE_ASSIGN_OR_RETURN(indexer.interleaved,
                         in.BoolOr("indexer_rope_interleave", defaults.indexer.interleaved));
  if (indexer.width < mla.r)
    return in.Bad("index_head_dim", fmt::format("at least qk_rope_head_dim ({})", mla.r),
                  fmt::format("{}", indexer.width));
  if (mla.cq == 0)
    return in.Bad("q_lora_rank", "a query latent, from which the indexer is computed", "none");
  return indexer;
}

// One id, a list of ids, or null.
Result<std::vector<int64_t>> ParseIds(const ConfigReader& in, std::string_view key, int64_t vocab) {
  const std::optional<Json> value = in.Find(key);
  std::vector<int64_t> ids;
  if (!value) return ids;
  const size_t count = value->is_array() ? value->size() : 1;
  for (size_t i = 0; i < count; ++i) {
    const Json item = value->is_array() ? value->At(i) : *value;
    LATTE_ASSIGN_OR_RETURN(const int64_t id, item.AsInt());
    if (id < 0 || id >= vocab)
      return Corrupt(fmt::format("{}: expected a token id below vocab_size ({}), found {}",
                                 item.path(), vocab, id));
    ids.push_back(id);
  }
  return ids;
}

void AddEos(const std::vector<int64_t>& ids, ModelConfig& config) {
  for (const int64_t id : ids)
    if (std::find(config.eos.begin(), config.eos.end(), id) == config.eos.end())
      config.eos.push_back(id);
}

// An upper estimate of the size, which guarantees that no later product of sizes overflows.
Status CheckSize(const ConfigReader& in, const ModelConfig& config) {
  const auto f = [](int64_t x) { return static_cast<double>(x); };
  const MlaDims& mla = config.mla;
  const MoeDims& moe = config.moe;
  const double d = f(mla.d);
  const double heads = f(mla.h);
  const double attention = d * f(mla.cq) + (d + f(mla.cq)) * heads * f(mla.qk()) +
                           d * f(mla.latent()) + heads * f(mla.n + mla.v) * f(mla.c) +
                           heads * f(mla.v) * d;
  const double indexer = f(config.indexer.heads * config.indexer.width) * f(mla.cq) +
                         d * f(config.indexer.heads + config.indexer.width);
  const double mlp = 3 * d * (f(config.dense_width) + f(moe.experts + moe.shared) * f(moe.width)) +
                     d * f(moe.experts);
  const double params = 2 * f(config.vocab) * d + f(config.layers + config.mtp_layers) *
                                                      (attention + indexer + mlp + 2 * d * d);
  if (params <= kMaxParams) return {};
  return in.Bad("num_hidden_layers",
                fmt::format("a model of at most {:.0e} parameters", kMaxParams),
                fmt::format("about {:.1e}", params));
}

Status CheckNoOtherParts(const Json& config) {
  const ConfigReader in(config);
  LATTE_ASSIGN_OR_RETURN(const std::string act, in.StringOr("hidden_act", "silu"));
  if (act != "silu")
    return Unsupported(
        fmt::format("{}: 'hidden_act': expected silu, found '{}'", config.path(), Printable(act)));
  return {};
}

// Parses sizes, layer kinds and formats, in order of their dependencies.
Status ParseParts(const Json& json, const ClassDefaults& defaults, ModelConfig& config) {
  const ConfigReader in(json);
  LATTE_ASSIGN_OR_RETURN(config.quant, ParseQuantConfig(json));
  LATTE_ASSIGN_OR_RETURN(config.mla, ParseMla(in, defaults));
  LATTE_ASSIGN_OR_RETURN(config.rope, ParseRope(json, defaults, config.mla.r));
  if (defaults.query_temperature) LATTE_RETURN_IF_ERROR(ParseMistralRope(json, config.rope));
  LATTE_ASSIGN_OR_RETURN(config.scales, ParseScales(in, defaults, config.layers, config.mla.d));
  LATTE_ASSIGN_OR_RETURN(config.indexer, ParseIndexer(in, defaults, config.mla));
  if (config.indexer.heads > 0) {
    LATTE_ASSIGN_OR_RETURN(config.indexed_layers, ParseIndexedLayers(in, config.layers));
    LATTE_ASSIGN_OR_RETURN(config.drafts_share_keys,
                           in.BoolOr("index_share_for_mtp_iteration", false));
  }
  LATTE_ASSIGN_OR_RETURN(config.moe, ParseMoe(in, defaults.moe, config.layers));
  if (config.moe.experts > 0) {
    LATTE_ASSIGN_OR_RETURN(config.moe_layers, ParseMoeLayers(in, config.layers));
  }
  return CheckSize(in, config);
}

Result<ModelConfig> ParseText(const Json& json, const ModelFamily& family) {
  LATTE_RETURN_IF_ERROR(CheckIsMla(json));
  const ConfigReader in(json);
  LATTE_RETURN_IF_ERROR(CheckNoOtherParts(json));
  const ClassDefaults& defaults = *family.defaults;
  ModelConfig config;
  config.architecture = family.architecture;
  config.model_type = family.model_type;
  LATTE_ASSIGN_OR_RETURN(config.layers, in.Int("num_hidden_layers", kLayers));
  LATTE_ASSIGN_OR_RETURN(config.vocab, in.Int("vocab_size", kVocab));
  LATTE_ASSIGN_OR_RETURN(config.dense_width, in.Int("intermediate_size", kMlpWidth));
  LATTE_ASSIGN_OR_RETURN(config.max_position, in.Int("max_position_embeddings", kMaxPosition));
  LATTE_ASSIGN_OR_RETURN(config.norm_eps, in.NumberOr("rms_norm_eps", kEps, defaults.norm_eps));
  LATTE_ASSIGN_OR_RETURN(config.tied_embeddings,
                         in.BoolOr("tie_word_embeddings", defaults.tied_embeddings));
  LATTE_ASSIGN_OR_RETURN(config.mtp_layers, in.IntOr("num_nextn_predict_layers", {0, 100}, 0));
  LATTE_ASSIGN_OR_RETURN(const std::vector<int64_t> bos,
                         ParseIds(in, "bos_token_id", config.vocab));
  if (!bos.empty()) config.bos = bos.front();
  LATTE_ASSIGN_OR_RETURN(const std::vector<int64_t> eos,
                         ParseIds(in, "eos_token_id", config.vocab));
  AddEos(eos, config);
  LATTE_RETURN_IF_ERROR(ParseParts(json, defaults, config));
  return config;
}

// Refuses a text part that is no object, also where the family has no parts: other programs take
// such a part for the whole config, so a wrong one is a damaged file.
Status CheckTextParts(const Json& json) {
  const ConfigReader in(json);
  for (const std::string_view key : kTextKeys) {
    const std::optional<Json> text = in.Find(key);
    if (!text || text->is_object()) continue;
    return in.Bad(key, "an object, the config of the text model",
                  text->is_string()   ? "a string"
                  : text->is_array()  ? "a list"
                  : text->is_number() ? "a number"
                                      : "true or false");
  }
  return {};
}

// Parses the text part of a multi-part model. Token ids and quantisation may be in the outer
// config.
Result<ModelConfig> ParseWrapped(const Json& json) {
  for (const std::string_view key : kTextKeys) {
    const std::optional<Json> text = json.Find(key);
    if (!text) continue;
    LATTE_ASSIGN_OR_RETURN(const ModelFamily* family, FindModelFamily(*text));
    if (family->wraps())
      return Unsupported(fmt::format(
          "{}: expected the config of a text model, found one that wraps another", text->path()));
    LATTE_ASSIGN_OR_RETURN(ModelConfig config, ParseText(*text, *family));
    config.wrapped = true;
    const ConfigReader outer(json);
    LATTE_ASSIGN_OR_RETURN(const std::vector<int64_t> eos,
                           ParseIds(outer, "eos_token_id", config.vocab));
    AddEos(eos, config);
    if (!text->Find("quantization_config")) {
      LATTE_ASSIGN_OR_RETURN(config.quant, ParseQuantConfig(json));
    }
    return config;
  }
  const bool null = ConfigReader(json).IsNull(kTextKeys[0]);
  return Corrupt(fmt::format("{}: {}; expected the config of the text model there", json.path(),
                             null ? "'text_config' is null" : "key 'text_config' is missing"));
}

}  // namespace

std::vector<std::string> UnusedFeatures(const ModelConfig& config) {
  std::vector<std::string> out = config.assumed;
  if (config.wrapped)
    out.push_back(fmt::format("only the text part ({}) of this model is used: no images, no sound",
                              config.architecture));
  return out;
}

Result<ModelConfig> ParseModelConfig(const Json& json) {
  if (!json.is_object())
    return Corrupt(fmt::format("{}: expected an object, found another type", json.path()));
  LATTE_ASSIGN_OR_RETURN(const ModelFamily* family, FindModelFamily(json));
  LATTE_RETURN_IF_ERROR(CheckTextParts(json));
  if (family->wraps()) return ParseWrapped(json);
  return ParseText(json, *family);
}

namespace {

// Adds the end tokens of generation_config.json.
Status AddGenerationEos(const std::string& dir, ModelConfig& config) {
  const std::string path = dir + "/generation_config.json";
  if (!Exists(path)) return {};
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigBytes));
  LATTE_ASSIGN_OR_RETURN(const Json json, Json::Parse(text, path));
  if (!json.is_object())
    return Corrupt(fmt::format("{}: expected an object, found another type", path));
  LATTE_ASSIGN_OR_RETURN(const std::vector<int64_t> eos,
                         ParseIds(ConfigReader(json), "eos_token_id", config.vocab));
  AddEos(eos, config);
  return {};
}

bool IsFile(const std::string& path) {
  return (path.ends_with(".json") || path.ends_with(".gguf")) && !IsDirectory(path);
}

}  // namespace

void AddTokenizerEos(const Tokenizer& tokenizer, ModelConfig& config) {
  const std::optional<int32_t> id = tokenizer.eos_id();
  if (config.eos.empty() && id && *id < config.vocab) config.eos.push_back(*id);
}

Result<ModelConfig> LoadModelConfig(const std::string& dir) {
  LATTE_ASSIGN_OR_RETURN(ModelConfig config, LoadModelConfigAlone(dir));
  if (!config.eos.empty() || IsFile(dir)) return config;
  // A folder without a tokenizer has no end token. An error in a tokenizer is reported where one is
  // needed.
  if (const Result<Tokenizer> tokenizer = Tokenizer::Load(dir)) AddTokenizerEos(*tokenizer, config);
  return config;
}

Result<ModelConfig> LoadModelConfigAlone(const std::string& dir) {
  const bool is_file = IsFile(dir);
  if (is_file && dir.ends_with(".gguf")) {
    LATTE_ASSIGN_OR_RETURN(const GgufFiles files, GgufFiles::Open(dir));
    return ParseGgufConfig(files.metadata(), files.tensors(),
                           [&](const StoredTensor& tensor) { return files.Bytes(tensor); });
  }
  const std::string path = is_file ? dir : dir + "/config.json";
  Result<std::string> text = ReadFile(path, kMaxConfigBytes);
  if (!text && text.error().code == Code::kNotFound)
    text.error().message +=
        "; expected a Hugging Face folder (config.json, tokenizer.json, *.safetensors) or a .gguf "
        "file";
  if (!text) return tl::unexpected(std::move(text).error());
  LATTE_ASSIGN_OR_RETURN(const Json json, Json::Parse(*text, path));
  LATTE_ASSIGN_OR_RETURN(ModelConfig config, ParseModelConfig(json));
  config.text_hash = XXH3_64bits(text->data(), text->size());
  if (is_file) return config;
  LATTE_RETURN_IF_ERROR(AddGenerationEos(dir, config));
  return config;
}

}  // namespace latte
