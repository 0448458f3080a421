#include "src/jobs/convert/quant_scheme.h"

#include "src/base/json_out.h"
#include "src/base/math.h"
#include "src/checkpoint/expected_tensors.h"

namespace latte {
namespace {

// Describes the quantised values of one kind; `strategy` names the elements that share a scale.
JsonOut QuantArgs(int64_t bits, std::string_view strategy, bool dynamic,
                  const JsonOut& group_size) {
  return {{"actorder", nullptr},
          {"block_structure", nullptr},
          {"dynamic", dynamic},
          {"group_size", group_size},
          {"num_bits", bits},
          {"observer", dynamic ? JsonOut(nullptr) : JsonOut("minmax")},
          {"observer_kwargs", JsonOut::object()},
          {"strategy", strategy},
          {"symmetric", true},
          {"type", "int"}};
}

JsonOut CompressedTensors(const QuantScheme& scheme, const std::vector<std::string>& kept) {
  const bool i8 = scheme.kind == QuantScheme::Kind::kI8;
  // Engines with int8 products round activations per token for weights of this format.
  const JsonOut activations = i8 ? QuantArgs(8, "token", true, nullptr) : JsonOut(nullptr);
  JsonOut ignore = {"lm_head", "re:.*mlp\\.gate$", "re:.*indexer.*", "re:.*eh_proj$",
                    "re:.*shared_head.*"};
  if (!i8) ignore.push_back("re:.*kv_b_proj$");
  for (const std::string& module : kept) ignore.push_back(module);
  return {{"config_groups",
           {{"group_0",
             {{"input_activations", activations},
              {"output_activations", nullptr},
              {"targets", {"Linear"}},
              {"weights", i8 ? QuantArgs(8, "channel", false, nullptr)
                             : QuantArgs(4, "group", false, scheme.group)}}}}},
          {"format", i8 ? "int-quantized" : "pack-quantized"},
          {"ignore", std::move(ignore)},
          {"kv_cache_scheme", nullptr},
          {"quant_method", "compressed-tensors"},
          {"quantization_status", "compressed"}};
}

}  // namespace

bool TakesMatrix(const QuantScheme& scheme, std::string_view name) {
  if (!IsProjection(name)) return false;
  if (scheme.kind == QuantScheme::Kind::kF8) return true;
  if (name.find(".indexer.") != std::string_view::npos) return false;
  return scheme.kind == QuantScheme::Kind::kI8 || !name.ends_with(".kv_b_proj.weight");
}

bool FitsGroups(const QuantScheme& scheme, int64_t columns) {
  return scheme.kind != QuantScheme::Kind::kI4 || columns % scheme.group == 0;
}

std::vector<TensorPlan> PlanMatrix(const QuantScheme& scheme, const std::string& name, int64_t rows,
                                   int64_t columns) {
  switch (scheme.kind) {
    case QuantScheme::Kind::kF8:
      return {{name, "F8_E4M3", {rows, columns}},
              {name + "_scale_inv", "F32", {CeilDiv(rows, kF8Block), CeilDiv(columns, kF8Block)}}};
    case QuantScheme::Kind::kI8:
      return {{name, "I8", {rows, columns}}, {name + "_scale", "BF16", {rows, 1}}};
    case QuantScheme::Kind::kI4:
      return {{name + "_packed", "I32", {rows, columns / 8}},
              {name + "_scale", "BF16", {rows, columns / scheme.group}},
              {name + "_shape", "I64", {2}}};
  }
  return {};
}

JsonOut QuantizationConfig(const QuantScheme& scheme, const std::vector<std::string>& kept) {
  if (scheme.kind != QuantScheme::Kind::kF8) return CompressedTensors(scheme, kept);
  return {{"activation_scheme", "dynamic"},
          {"fmt", "e4m3"},
          {"quant_method", "fp8"},
          {"weight_block_size", {kF8Block, kF8Block}}};
}

std::string ModuleOf(std::string_view weight_name) {
  return std::string(weight_name.substr(0, weight_name.rfind('.')));
}

}  // namespace latte
