#include "src/io/model_family.h"

#include <string>

#include <fmt/format.h>

#include "src/io/printable.h"

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

constexpr std::string_view kIndexer = "its sparse-attention indexer is not supported";
constexpr std::string_view kWrapper = "it wraps a text model in a vision model";
constexpr std::string_view kHybrid = "it mixes MLA with linear-attention layers";
constexpr std::string_view kNotMla = "it is not MLA";

constexpr ModelFamily kFamilies[] = {
    {"deepseek_v2", "DeepseekV2ForCausalLM", &kDeepseekV2, ""},
    {"deepseek_v3", "DeepseekV3ForCausalLM", &kDeepseekV3, ""},
    {"kimi_k2", "DeepseekV3ForCausalLM", &kDeepseekV3, ""},

    {"deepseek_v32", "DeepseekV32ForCausalLM", nullptr, kIndexer},
    {"glm_moe_dsa", "GlmMoeDsaForCausalLM", nullptr, kIndexer},
    {"dots3_note", "", nullptr, kIndexer},
    {"hy_v4", "", nullptr, kIndexer},
    {"kimi_k25", "KimiK25ForConditionalGeneration", nullptr, kWrapper},
    {"kimi_vl", "KimiVLForConditionalGeneration", nullptr, kWrapper},
    {"deepseek_vl_v2", "DeepseekVLV2ForCausalLM", nullptr, kWrapper},
    {"deepseek_vl_v2", "DeepseekOCRForCausalLM", nullptr, kNotMla},
    {"glm4_moe_lite", "Glm4MoeLiteForCausalLM", nullptr, "its layer and router keys are not read"},
    {"longcat_flash", "LongcatFlashForCausalLM", nullptr, "it has two attention blocks per layer"},
    {"longcat_flash_ngram", "", nullptr, "it has two attention blocks per layer"},
    {"minicpm3", "MiniCPM3ForCausalLM", nullptr, "its longrope and scaled residuals are not built"},
    {"mistral4", "Mistral4ForCausalLM", nullptr, "its query temperature is not supported"},
    {"youtu", "YoutuForCausalLM", nullptr, "its configuration class is not read"},
    {"axk1", "AXK1ForCausalLM", nullptr, "its norm after the MoE output is not supported"},
    {"pangu_ultra_moe", "PanguUltraMoEForCausalLM", nullptr,
     "its sandwich norms are not supported"},
    {"plm", "PLMForCausalLM", nullptr, "its MLP without a gate is not supported"},
    {"", "SarvamMLAForCausalLM", nullptr, "its configuration class is not read"},
    {"kimi_linear", "KimiLinearForCausalLM", nullptr, kHybrid},
    {"kimi_k3", "", nullptr, kHybrid},
    {"bailing_hybrid", "", nullptr, kHybrid},

    {"deepseek_v4", "DeepseekV4ForCausalLM", nullptr, kNotMla},
    {"deepseek", "DeepseekForCausalLM", nullptr, kNotMla},
    {"glm4_moe", "Glm4MoeForCausalLM", nullptr, kNotMla},
    {"minicpm", "MiniCPMForCausalLM", nullptr, kNotMla},
};

std::string Supported() {
  std::string out;
  for (const ModelFamily& family : kFamilies)
    if (family.refused.empty())
      out +=
          fmt::format("{}{} ({})", out.empty() ? "" : ", ", family.model_type, family.architecture);
  return out;
}

// The first entry of "architectures"; empty when there is none.
Result<std::string> Architecture(const Json& config) {
  const std::optional<Json> list = config.Find("architectures");
  if (!list || (list->is_array() && list->size() == 0)) return std::string();
  if (!list->is_array())
    return Corrupt(fmt::format("{}: expected a list of names, found another type", list->path()));
  return list->At(0).AsString();
}

tl::unexpected<Error> Refuse(const Json& config, std::string_view name, std::string_view reason) {
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
      return Refuse(config, architecture, family.refused);
  for (const ModelFamily& family : kFamilies)
    if (!family.refused.empty() && !type.empty() && family.model_type == type)
      return Refuse(config, type, family.refused);
  for (const ModelFamily& family : kFamilies) {
    const bool fits_type = type.empty() || family.model_type == type;
    const bool fits_architecture = architecture.empty() || family.architecture == architecture;
    if (fits_type && fits_architecture) return &family;
  }
  return Refuse(config, fmt::format("{}{}{}", type, type.empty() ? "" : " ", architecture),
                "no supported model has this model_type and architecture");
}

}  // namespace latte
