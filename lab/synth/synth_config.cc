// The shapes of published models. Source: their config.json files.
#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lab/synth/synth.h"
#include "src/base/json_out.h"
#include "src/base/one_of.h"
#include "src/checkpoint/config/model_config.h"
#include "src/jobs/convert/quant_scheme.h"

namespace latte {
namespace {

struct ShapeRow {
  std::string_view name;
  std::string_view architecture;
  std::string_view model_type;
  int64_t layers, d, h, cq, n, v, dense_width, vocab, max_position;
  double eps;
  int64_t experts, shared, chosen, groups, groups_kept, expert_width, first_dense;
  std::string_view topk_method, scoring;
  bool normalize;
  double scale;
  double theta;
  double yarn_factor = 0;  // 0: no YaRN
  double beta_fast = 0, mscale = 0;
  int64_t bos, eos;  // -1: none
  int64_t mtp = 0;   // multi-token-prediction layers, unless the spec says otherwise
  IndexerDims indexer = {};
  int64_t c = 512, r = 64;
  bool tied = false;
};

constexpr ShapeRow kV2Lite = {
    .name = "v2-lite",
    .architecture = "DeepseekV2ForCausalLM",
    .model_type = "deepseek_v2",
    .layers = 27,
    .d = 2048,
    .h = 16,
    .cq = 0,
    .n = 128,
    .v = 128,
    .dense_width = 10944,
    .vocab = 102400,
    .max_position = 163840,
    .eps = 1e-6,
    .experts = 64,
    .shared = 2,
    .chosen = 6,
    .groups = 1,
    .groups_kept = 1,
    .expert_width = 1408,
    .first_dense = 1,
    .topk_method = "greedy",
    .scoring = "softmax",
    .normalize = false,
    .scale = 1.0,
    .theta = 1e4,
    .yarn_factor = 40,
    .beta_fast = 32,
    .mscale = 0.707,
    .bos = 100000,
    .eos = 100001,
};

constexpr ShapeRow kV2 = {
    .name = "v2",
    .architecture = "DeepseekV2ForCausalLM",
    .model_type = "deepseek_v2",
    .layers = 60,
    .d = 5120,
    .h = 128,
    .cq = 1536,
    .n = 128,
    .v = 128,
    .dense_width = 12288,
    .vocab = 102400,
    .max_position = 163840,
    .eps = 1e-6,
    .experts = 160,
    .shared = 2,
    .chosen = 6,
    .groups = 8,
    .groups_kept = 3,
    .expert_width = 1536,
    .first_dense = 1,
    .topk_method = "group_limited_greedy",
    .scoring = "softmax",
    .normalize = false,
    .scale = 16.0,
    .theta = 1e4,
    .yarn_factor = 40,
    .beta_fast = 32,
    .mscale = 0.707,
    .bos = 100000,
    .eos = 100001,
};

constexpr ShapeRow kV3 = {
    .name = "v3",
    .architecture = "DeepseekV3ForCausalLM",
    .model_type = "deepseek_v3",
    .layers = 61,
    .d = 7168,
    .h = 128,
    .cq = 1536,
    .n = 128,
    .v = 128,
    .dense_width = 18432,
    .vocab = 129280,
    .max_position = 163840,
    .eps = 1e-6,
    .experts = 256,
    .shared = 1,
    .chosen = 8,
    .groups = 8,
    .groups_kept = 4,
    .expert_width = 2048,
    .first_dense = 3,
    .topk_method = "noaux_tc",
    .scoring = "sigmoid",
    .normalize = true,
    .scale = 2.5,
    .theta = 1e4,
    .yarn_factor = 40,
    .beta_fast = 32,
    .mscale = 1.0,
    .bos = 0,
    .eos = 1,
};

constexpr ShapeRow V32() {
  ShapeRow row = kV3;
  row.name = "v3.2";
  row.architecture = "DeepseekV32ForCausalLM";
  row.model_type = "deepseek_v32";
  row.indexer = {.heads = 64, .width = 128, .topk = 2048};
  return row;
}

// Attention of V3 with small other layers, for comparing engines; not a published model.
constexpr ShapeRow V3Attn() {
  ShapeRow row = kV3;
  row.name = "v3-attn";
  row.layers = 2;
  row.dense_width = 2048;
  row.vocab = 8192;
  row.experts = 8;
  row.chosen = 2;
  row.groups = 1;
  row.groups_kept = 1;
  row.expert_width = 512;
  row.first_dense = 1;
  return row;
}

// The architecture of V3, its multi-token-prediction layer included, with the widths of V2-Lite; not a
// published model. The query latent, which V2-Lite lacks, is as wide as that of GLM-4.7-Flash, whose
// hidden size is the same.
constexpr ShapeRow V3Lite() {
  ShapeRow row = kV3;
  row.name = "v3-lite";
  row.layers = kV2Lite.layers;
  row.d = kV2Lite.d;
  row.h = kV2Lite.h;
  row.cq = 768;
  row.dense_width = kV2Lite.dense_width;
  row.vocab = kV2Lite.vocab;
  row.experts = kV2Lite.experts;
  row.shared = kV2Lite.shared;
  row.chosen = kV2Lite.chosen;
  row.expert_width = kV2Lite.expert_width;
  row.first_dense = kV2Lite.first_dense;
  row.mtp = 1;
  return row;
}

// The attention widths of V3 in the smallest model that has all its parts, for tests of kernels; not a
// published model.
constexpr ShapeRow V3Micro() {
  ShapeRow row = V3Lite();
  row.name = "v3-micro";
  row.layers = 3;
  row.d = 512;
  row.cq = 256;
  row.dense_width = 512;
  row.vocab = 512;
  row.experts = 8;
  row.shared = 1;
  row.chosen = 2;
  row.groups = 2;
  row.groups_kept = 1;
  row.expert_width = 256;
  row.first_dense = 1;
  return row;
}

constexpr ShapeRow kKimiK2 = {
    .name = "kimi-k2",
    .architecture = "DeepseekV3ForCausalLM",
    .model_type = "kimi_k2",
    .layers = 61,
    .d = 7168,
    .h = 64,
    .cq = 1536,
    .n = 128,
    .v = 128,
    .dense_width = 18432,
    .vocab = 163840,
    .max_position = 131072,
    .eps = 1e-6,
    .experts = 384,
    .shared = 1,
    .chosen = 8,
    .groups = 1,
    .groups_kept = 1,
    .expert_width = 2048,
    .first_dense = 1,
    .topk_method = "noaux_tc",
    .scoring = "sigmoid",
    .normalize = true,
    .scale = 2.827,
    .theta = 5e4,
    .yarn_factor = 32,
    .beta_fast = 1,
    .mscale = 1.0,
    .bos = 163584,
    .eos = 163585,
};

constexpr ShapeRow kGlm47Flash = {
    .name = "glm-4.7-flash",
    .architecture = "Glm4MoeLiteForCausalLM",
    .model_type = "glm4_moe_lite",
    .layers = 47,
    .d = 2048,
    .h = 20,
    .cq = 768,
    .n = 192,
    .v = 256,
    .dense_width = 10240,
    .vocab = 154880,
    .max_position = 202752,
    .eps = 1e-5,
    .experts = 64,
    .shared = 1,
    .chosen = 4,
    .groups = 1,
    .groups_kept = 1,
    .expert_width = 1536,
    .first_dense = 1,
    .topk_method = "noaux_tc",
    .scoring = "sigmoid",
    .normalize = true,
    .scale = 1.8,
    .theta = 1e6,
    .bos = -1,
    .eos = 154820,
};

constexpr ShapeRow kMiniCpm3 = {
    .name = "minicpm3",
    .architecture = "MiniCPM3ForCausalLM",
    .model_type = "minicpm3",
    .layers = 62,
    .d = 2560,
    .h = 40,
    .cq = 768,
    .n = 64,
    .v = 64,
    .dense_width = 6400,
    .vocab = 73448,
    .max_position = 32768,
    .eps = 1e-5,
    .experts = 0,
    .theta = 1e4,
    .bos = 1,
    .eos = 2,
    .c = 256,
    .r = 32,
    .tied = true,
};

// Of MiniCPM3: its long_factor and its short_factor, which are equal.
constexpr std::array kMiniCpm3Factors = {
    1.0591234137867171, 1.1241891283591912, 1.2596935748670968, 1.5380380402321725,
    2.093982484148734,  3.1446935121267696, 4.937952647693647,  7.524541999994549,
    10.475458000005451, 13.062047352306353, 14.85530648787323,  15.906017515851266,
    16.461961959767827, 16.740306425132907, 16.87581087164081,  16.940876586213285};

constexpr std::array kShapes = {kV2Lite,  kV2,       kV3,     V32(),       V3Attn(),
                                V3Lite(), V3Micro(), kKimiK2, kGlm47Flash, kMiniCpm3};

Result<const ShapeRow*> FindShape(const std::string& name) {
  for (const ShapeRow& row : kShapes)
    if (row.name == name) return &row;
  return InvalidArgument(
      fmt::format("shape: expected one of {}, found '{}'", fmt::join(SynthShapes(), ", "), name));
}

// An id; null if there is none, or if a smaller vocabulary lacks it.
JsonOut TokenId(int64_t id, int64_t vocab) {
  return id >= 0 && id < vocab ? JsonOut(id) : JsonOut(nullptr);
}

JsonOut RopeScaling(const ShapeRow& row) {
  if (row.model_type == kMiniCpm3.model_type)
    return {{"type", "longrope"},
            {"long_factor", kMiniCpm3Factors},
            {"short_factor", kMiniCpm3Factors},
            {"original_max_position_embeddings", row.max_position}};
  if (row.yarn_factor == 0) return nullptr;
  return {{"type", "yarn"},
          {"factor", row.yarn_factor},
          {"original_max_position_embeddings", 4096},
          {"beta_fast", row.beta_fast},
          {"beta_slow", 1},
          {"mscale", row.mscale},
          {"mscale_all_dim", row.mscale}};
}

JsonOut MakeConfig(const ShapeRow& row, const SynthSpec& spec) {
  const int64_t layers = spec.layers.value_or(row.layers);
  const int64_t vocab = spec.vocab.value_or(row.vocab);
  JsonOut config = {{"architectures", {row.architecture}},
                    {"model_type", row.model_type},
                    {"torch_dtype", spec.format.f32() ? "float32" : "bfloat16"},
                    {"vocab_size", vocab},
                    {"hidden_size", row.d},
                    {"intermediate_size", row.dense_width},
                    {"num_hidden_layers", layers},
                    {"num_nextn_predict_layers", spec.mtp.value_or(row.mtp)},
                    {"num_attention_heads", row.h},
                    {"num_key_value_heads", row.h},
                    {"q_lora_rank", row.cq > 0 ? JsonOut(row.cq) : JsonOut(nullptr)},
                    {"kv_lora_rank", row.c},
                    {"qk_nope_head_dim", row.n},
                    {"qk_rope_head_dim", row.r},
                    {"v_head_dim", row.v}};
  if (row.experts > 0)
    config.update(
        {{"moe_intermediate_size", row.expert_width},
         {"n_routed_experts", spec.experts.value_or(row.experts)},
         {"n_shared_experts", row.shared},
         {"num_experts_per_tok", row.chosen},
         {"n_group", row.groups},
         {"topk_group", row.groups_kept},
         {"topk_method", row.topk_method},
         {"scoring_func", row.scoring},
         {"norm_topk_prob", row.normalize},
         {"routed_scaling_factor", row.scale},
         {"first_k_dense_replace", std::min(spec.dense.value_or(row.first_dense), layers)},
         {"moe_layer_freq", 1}});
  config.update({{"hidden_act", "silu"},
                 {"max_position_embeddings", row.max_position},
                 {"rope_theta", row.theta},
                 {"rope_scaling", RopeScaling(row)},
                 {"rms_norm_eps", row.eps},
                 {"initializer_range", 0.02},
                 {"attention_bias", false},
                 {"tie_word_embeddings", row.tied},
                 {"bos_token_id", TokenId(row.bos, vocab)},
                 {"eos_token_id", TokenId(row.eos, vocab)}});
  if (row.indexer.heads > 0)
    config.update({{"index_n_heads", row.indexer.heads},
                   {"index_head_dim", row.indexer.width},
                   {"index_topk", row.indexer.topk}});
  if (row.model_type == kMiniCpm3.model_type)
    config.update({{"scale_emb", 12}, {"scale_depth", 1.4}, {"dim_model_base", 256}});
  return config;
}

Result<int64_t> ParseNumber(std::string_view key, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return InvalidArgument(fmt::format("{}: expected a number of at least 0, found '{}'", key, text));
}

Status SetPart(std::string_view key, std::string_view value, SynthSpec& spec) {
  if (key == "dtype") {
    LATTE_ASSIGN_OR_RETURN(spec.format, ParseSynthFormat(value));
    return {};
  }
  LATTE_ASSIGN_OR_RETURN(const int64_t number, ParseNumber(key, value));
  if (key == "seed") {
    spec.seed = static_cast<uint64_t>(number);
    return {};
  }
  const std::pair<std::string_view, std::optional<int64_t>*> kNumbers[] = {
      {"layers", &spec.layers},
      {"dense", &spec.dense},
      {"vocab", &spec.vocab},
      {"experts", &spec.experts},
      {"mtp", &spec.mtp}};
  for (const auto& [name, part] : kNumbers) {
    if (name != key) continue;
    *part = number;
    return {};
  }
  return InvalidArgument(fmt::format(
      "synthetic model: expected layers, dense, vocab, experts, mtp, dtype or seed, found '{}'",
      key));
}

}  // namespace

std::vector<std::string> SynthShapes() {
  std::vector<std::string> names;
  for (const ShapeRow& row : kShapes) names.emplace_back(row.name);
  return names;
}

std::string SynthFormats() {
  std::vector<std::string_view> names = {"bf16", "f32"};
  for (const WeightFormat* format : WrittenFormats()) names.push_back(format->encoder->name);
  return OneOf(names);
}

Result<SynthFormat> ParseSynthFormat(std::string_view text) {
  if (text == "bf16") return SynthFormat{};
  if (text == "f32") return SynthFormat{.plain = DType::kF32};
  if (const auto scheme = FindWrittenScheme(text)) return SynthFormat{.quant = scheme};
  return InvalidArgument(fmt::format("dtype: expected {}, found '{}'", SynthFormats(), text));
}

Result<SynthSpec> ParseSynthSpec(std::string_view text) {
  SynthSpec spec;
  const size_t colon = text.find(':');
  spec.shape = text.substr(0, colon);
  LATTE_RETURN_IF_ERROR(FindShape(spec.shape));
  if (colon == std::string_view::npos) return spec;
  std::string_view rest = text.substr(colon + 1);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      return InvalidArgument(fmt::format("synthetic model: expected key=value, found '{}'", part));
    LATTE_RETURN_IF_ERROR(SetPart(part.substr(0, equals), part.substr(equals + 1), spec));
  }
  return spec;
}

Result<JsonOut> SynthConfig(const SynthSpec& spec) {
  LATTE_ASSIGN_OR_RETURN(const ShapeRow* row, FindShape(spec.shape));
  JsonOut config = MakeConfig(*row, spec);
  LATTE_ASSIGN_OR_RETURN(const Json parsed, Json::Parse(Dump(config), spec.shape));
  // ParseModelConfig checks the numbers.
  if (const auto checked = ParseModelConfig(parsed); !checked)
    return InvalidArgument("no such model: " + checked.error().message);
  return config;
}

}  // namespace latte
