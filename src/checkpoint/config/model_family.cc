#include "src/checkpoint/config/model_family.h"

#include <string>

#include <fmt/format.h>

#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr ClassDefaults kDeepseekV2 = {
    .mla = {.cq = 1536, .n = 128, .r = 64, .v = 128},
    .moe = {.width = 1407,  // sic
            .router = Router::kGreedy,
            .scoring = Scoring::kSoftmax,
            .normalize = false,
            .scale_normalized = false},
};

constexpr ClassDefaults kDeepseekV3 = {
    .mla = {.cq = 1536},
    .moe = {.experts = 256,
            .chosen = 8,
            .shared = 1,
            .groups = 8,
            .groups_kept = 4,
            .router = Router::kNoauxTc,
            .scoring = Scoring::kSigmoid,
            .normalize = true,
            .scale_normalized = true,
            .scale = 2.5,
            .first_dense = 3},
};

constexpr ClassDefaults kDeepseekV32 = {
    .mla = {.cq = 1536, .n = 128, .r = 64, .v = 128},
    .moe = kDeepseekV3.moe,
    .indexer = {.heads = 64, .width = 128, .topk = 2048},
};

constexpr ClassDefaults kGlmMoeLite = {
    .mla = {.cq = 768, .n = 192, .r = 64, .v = 256},
    .moe = {.experts = 64,
            .chosen = 4,
            .shared = 1,
            .width = 1536,
            .router = Router::kNoauxTc,
            .scoring = Scoring::kSigmoid,
            .normalize = true,
            .scale = 1.8,
            .first_dense = 1},
    .norm_eps = 1e-5,
};

constexpr ClassDefaults kGlmMoeDsa = {
    .mla = {.cq = 2048, .n = 192, .r = 64, .v = 256},
    .moe = {.experts = 256,
            .chosen = 8,
            .shared = 1,
            .width = 2048,
            .router = Router::kNoauxTc,
            .scoring = Scoring::kSigmoid,
            .normalize = true,
            .scale = 2.5,
            .first_dense = 3},
    .indexer = {.heads = 32, .width = 128, .topk = 2048, .interleaved = true},
    .norm_eps = 1e-5,
};

constexpr ClassDefaults kYoutu = {
    .mla = {.cq = 1536, .n = 128, .r = 64, .v = 128},
    .tied_embeddings = true,
};

constexpr ClassDefaults kAxk1 = {
    .mla = {.cq = 1536, .n = 128, .r = 64, .v = 128},
    .moe = {.experts = 192,
            .chosen = 8,
            .shared = 1,
            .width = 2048,
            .groups = 8,
            .groups_kept = 4,
            .router = Router::kNoauxTc,
            .scoring = Scoring::kSigmoid,
            .normalize = true,
            .scale = 2.5,
            .first_dense = 1,
            .bias_optional = true,  // the released files have no bias
            .post_norm = true},
};

constexpr ClassDefaults kMistral4 = {
    .mla = {.cq = 1024, .n = 64, .r = 64, .v = 128},
    .moe = {.experts = 128,
            .chosen = 4,
            .shared = 1,
            .width = 2048,
            .router = Router::kNoauxTc,
            .scoring = Scoring::kSoftmax,
            .normalize = true,
            .bias_optional = true},  // the class has no bias
    .query_temperature = true,
};

constexpr ClassDefaults kMiniCpm3 = {
    .mla = {.cq = 768, .n = 64, .r = 32},  // V is D/H
    .norm_eps = 1e-5,
    .tied_embeddings = true,
    .rope_interleaved = false,
    .long_rope = true,
    .scales = {.embedding = 12, .depth = 1.4, .base_width = 256},
};

constexpr std::string_view kHybrid = "it mixes MLA with linear-attention layers";
constexpr std::string_view kNotMla = "it is not MLA";

constexpr ModelFamily kFamilies[] = {
    {"deepseek_v2", "DeepseekV2ForCausalLM", &kDeepseekV2, ""},
    {"deepseek_v3", "DeepseekV3ForCausalLM", &kDeepseekV3, ""},
    {"kimi_k2", "DeepseekV3ForCausalLM", &kDeepseekV3, ""},
    {"deepseek_v32", "DeepseekV32ForCausalLM", &kDeepseekV32, ""},
    {"glm_moe_dsa", "GlmMoeDsaForCausalLM", &kGlmMoeDsa, ""},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", &kGlmMoeLite, ""},
    {"youtu", "YoutuForCausalLM", &kYoutu, ""},
    {"axk1", "AXK1ForCausalLM", &kAxk1, ""},
    {"mistral4", "Mistral4ForCausalLM", &kMistral4, ""},
    {"minicpm3", "MiniCPM3ForCausalLM", &kMiniCpm3, ""},

    {"kimi_k25", "KimiK25ForConditionalGeneration", nullptr, ""},
    {"kimi_vl", "KimiVLForConditionalGeneration", nullptr, ""},
    {"deepseek_vl_v2", "DeepseekVLV2ForCausalLM", nullptr, ""},
    {"mistral3", "Mistral3ForConditionalGeneration", nullptr, ""},

    {"", "DeepseekOCRForCausalLM", nullptr, kNotMla},
    {"dots3_note", "", nullptr, "its sliding-window layers are not built"},
    {"hy_v4", "", nullptr, "its output gates and attention sinks are not built"},
    {"longcat_flash", "LongcatFlashForCausalLM", nullptr,
     "it has two attention blocks per layer and identity experts"},
    {"longcat_flash_ngram", "", nullptr,
     "it has two attention blocks per layer and n-gram embeddings"},
    {"pangu_ultra_moe", "PanguUltraMoEForCausalLM", nullptr,
     "its sandwich norms are not supported"},
    {"plm", "PLMForCausalLM", nullptr, "its MLP without a gate is not supported"},
    {"", "SarvamMLAForCausalLM", nullptr, "its configuration class is not read"},
    {"axk2", "AXK2ForCausalLM", nullptr,
     "its gated norms and gated attention output are not built"},
    {"kimi_linear", "KimiLinearForCausalLM", nullptr, kHybrid},
    {"kimi_k3", "", nullptr, kHybrid},
    {"bailing_hybrid", "", nullptr, kHybrid},

    {"deepseek_v4", "DeepseekV4ForCausalLM", nullptr, kNotMla},
    {"deepseek", "DeepseekForCausalLM", nullptr, kNotMla},
    {"glm4_moe", "Glm4MoeForCausalLM", nullptr, kNotMla},
    {"minicpm", "MiniCPMForCausalLM", nullptr, kNotMla},
    {"ministral3", "Ministral3ForCausalLM", nullptr, kNotMla},
    {"mistral", "MistralForCausalLM", nullptr, kNotMla},
};

std::string Supported() {
  std::string out;
  for (const ModelFamily& family : kFamilies)
    if (family.refused.empty())
      out +=
          fmt::format("{}{} ({})", out.empty() ? "" : ", ", family.model_type, family.architecture);
  return out;
}

// The first entry of "architectures"; empty if there is none.
Result<std::string> Architecture(const Json& config) {
  const std::optional<Json> list = config.Find("architectures");
  if (!list || (list->is_array() && list->size() == 0)) return std::string();
  if (!list->is_array())
    return Corrupt(fmt::format("{}: expected a list of names, found another type", list->path()));
  return list->At(0).AsString();
}

tl::unexpected<Error> RefuseModel(const Json& config, std::string_view name,
                                  std::string_view reason) {
  return Unsupported(fmt::format("{}: '{}' is not supported: {}; supported: {}", config.path(),
                                 Printable(name), reason, Supported()));
}

}  // namespace

Result<const ModelFamily*> FindModelFamily(const Json& config) {
  LATTE_ASSIGN_OR_RETURN(const std::string type, config.GetStringOr("model_type", ""));
  LATTE_ASSIGN_OR_RETURN(const std::string architecture, Architecture(config));
  if (type.empty() && architecture.empty())
    return Corrupt(fmt::format("{}: key 'model_type' is missing", config.path()));
  for (const ModelFamily& family : kFamilies)
    if (!family.refused.empty() && !architecture.empty() && family.architecture == architecture)
      return RefuseModel(config, architecture, family.refused);
  for (const ModelFamily& family : kFamilies)
    if (!family.refused.empty() && !type.empty() && family.model_type == type)
      return RefuseModel(config, type, family.refused);
  for (const ModelFamily& family : kFamilies) {
    const bool fits_type = type.empty() || family.model_type == type;
    const bool fits_architecture = architecture.empty() || family.architecture == architecture;
    if (fits_type && fits_architecture) return &family;
  }
  return RefuseModel(
      config,
      fmt::format("{}{}{}", type, type.empty() || architecture.empty() ? "" : " ", architecture),
      "no supported model has this model_type and architecture");
}

}  // namespace latte
