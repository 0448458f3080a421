#include "src/checkpoint/config/gguf/gguf_architecture.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr std::string_view kNotMlaModel = "it is not MLA";
constexpr std::string_view kLinearLayers = "it mixes MLA with linear-attention layers";

constexpr std::string_view kReadArchitectures[] = {kDeepseek2, kDeepseek32, kGlmDsa, kMistral4,
                                                   kMiniCpm3Gguf};
constexpr std::string_view kRead =
    "read from GGUF files: deepseek2 (DeepSeek V2 to R1, Kimi-K2, Moonlight, GLM-4.7-Flash, "
    "GigaChat3, Youtu-LLM), deepseek32 (DeepSeek-V3.2), glm-dsa (GLM-5), mistral4 "
    "(Mistral-Small-4), minicpm3 (MiniCPM3)";

struct RefusedArchitecture {
  std::string_view name;
  std::string_view reason;
};
constexpr RefusedArchitecture kRefusedArchitectures[] = {
    {"deepseek", kNotMlaModel},
    {"deepseek2-ocr", kNotMlaModel},
    {"deepseek4", kNotMlaModel},
    {"deepseek41", kNotMlaModel},
    {"kimi-linear", kLinearLayers},
    {"kimi-k3", kLinearLayers},
    {"bailingmoe3", kLinearLayers},
    {"glm5next", kLinearLayers},
    {"glm5-next", kLinearLayers},
    {"gigachat35", "its layers are not built"},
    {"axk2", "its gated norms and gated attention output are not built"},
    {"hy_v4", "its output gates and attention sinks are not built"},
    {"plm", "its MLP without a gate is not supported"},
    {"openpangu", "its sandwich norms are not supported"},
    {"dots3note", "its sliding-window layers are not built"},
};

}  // namespace

Result<std::string> GgufArchitecture(const GgufMetadata& metadata) {
  LATTE_ASSIGN_OR_RETURN(const std::optional<std::string_view> type,
                         metadata.String("general.type"));
  if (type && *type != "model")
    return Unsupported(
        fmt::format("{}: metadata key 'general.type': expected model, found '{}': it belongs to a "
                    "model; take the file with the weights",
                    metadata.path(), Printable(*type)));
  constexpr std::string_view kKey = "general.architecture";
  LATTE_ASSIGN_OR_RETURN(const std::optional<std::string_view> name, metadata.String(kKey));
  if (!name) return Corrupt(fmt::format("{}: metadata key '{}' is missing", metadata.path(), kKey));
  if (std::ranges::find(kReadArchitectures, *name) != std::end(kReadArchitectures))
    return std::string(*name);
  std::string_view reason = "it is no MLA model that is known";
  for (const RefusedArchitecture& refused : kRefusedArchitectures)
    if (refused.name == *name) reason = refused.reason;
  return Unsupported(fmt::format("{}: architecture '{}' is not supported: {}; {}", metadata.path(),
                                 Printable(*name), reason, kRead));
}

}  // namespace latte
