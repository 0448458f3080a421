#include "src/checkpoint/config/foreign_quant.h"

#include <fmt/format.h>

#include "src/checkpoint/config/quant_config.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

struct Tool {
  std::string_view mark;
  std::string_view name;
};

// Keyed by quant_method, as transformers, vLLM and SGLang spell it.
constexpr Tool kMethods[] = {{"bitsandbytes", "bitsandbytes"},
                             {"bitsandbytes_4bit", "bitsandbytes"},
                             {"bitsandbytes_8bit", "bitsandbytes"},
                             {"gguf", "llama.cpp (GGUF)"},
                             {"exl2", "ExLlamaV2 (EXL2)"},
                             {"exl3", "ExLlamaV3 (EXL3)"},
                             {"hqq", "HQQ"},
                             {"quanto", "quanto"},
                             {"torchao", "torchao"},
                             {"modelopt", "NVIDIA ModelOpt"},
                             {"modelopt_fp4", "NVIDIA ModelOpt (NVFP4)"},
                             {"nvfp4", "NVIDIA ModelOpt (NVFP4)"},
                             {"mxfp4", "an MXFP4 writer"},
                             {"auto-round", "AutoRound"},
                             {"intel/auto-round", "AutoRound"},
                             {"quark", "AMD Quark"},
                             {"fbgemm_fp8", "FBGEMM"},
                             {"mlx", "MLX"},
                             {"eetq", "EETQ"},
                             {"aqlm", "AQLM"},
                             {"vptq", "VPTQ"},
                             {"higgs", "HIGGS"},
                             {"spqr", "SpQR"},
                             {"bitnet", "BitNet"}};

// Keyed by the end of a tensor's name.
constexpr Tool kEnds[] = {{".biases", "MLX"},
                          {".quant_state.bitsandbytes__nf4", "bitsandbytes"},
                          {".quant_state.bitsandbytes__fp4", "bitsandbytes"},
                          {".absmax", "bitsandbytes"},
                          {".SCB", "bitsandbytes"},
                          {".q_perm", "ExLlamaV2 (EXL2)"},
                          {".q_scale_max", "ExLlamaV2 (EXL2)"},
                          {".trellis", "ExLlamaV3 (EXL3)"},
                          {".W_q", "HQQ"},
                          {".weight._data", "quanto"},
                          {".weight_scale_2", "NVIDIA ModelOpt (NVFP4)"},
                          {".weight_global_scale", "llm-compressor (NVFP4)"},
                          {".input_scale",
                           "NVIDIA ModelOpt or another tool that stores scales of "
                           "activations"}};

tl::unexpected<Error> RefuseTool(const Json& at, std::string_view tool) {
  return Unsupported(
      fmt::format("{}: expected weights that are not quantised, or {}, found a copy quantised by "
                  "{}, which is not "
                  "read; {}",
                  at.path(), QuantMethods(), tool, CopyToTake()));
}

}  // namespace

std::string_view CopyToTake() {
  return "take the original checkpoint (`latte quantize` makes it smaller) or a copy in one of "
         "those formats";
}

Status CheckNotForeign(const Json& config) {
  const std::optional<Json> quant = config.Find("quantization_config");
  const std::optional<Json> method =
      quant && quant->is_object() ? quant->Find("quant_method") : std::nullopt;
  if (method && method->is_string()) {
    const Result<std::string> name = method->AsString();
    for (const Tool& tool : kMethods)
      if (name && *name == tool.mark) return RefuseTool(*quant, tool.name);
    return {};
  }
  if (const auto mlx = config.Find("quantization"); mlx && mlx->is_object() && mlx->Find("bits"))
    return RefuseTool(*mlx, "MLX");
  if (!quant || !quant->is_object()) return {};
  if (quant->Find("load_in_4bit") || quant->Find("load_in_8bit"))
    return RefuseTool(*quant, "bitsandbytes");
  if (quant->Find("quant_algo") || quant->Find("producer"))
    return RefuseTool(*quant, "NVIDIA ModelOpt");
  // AutoAWQ's own format has other keys.
  if (quant->Find("bits") && quant->Find("group_size")) return RefuseTool(*quant, "MLX, it seems");
  return {};
}

std::optional<std::string_view> ToolOfTensor(std::string_view name) {
  for (const Tool& tool : kEnds)
    if (name.ends_with(tool.mark)) return tool.name;
  return std::nullopt;
}

}  // namespace latte
