#include "src/checkpoint/formats/common/compressed_tensors.h"

#include <utility>

#include <fmt/format.h>

#include "src/checkpoint/formats/common/config_keys.h"

namespace latte {

Result<int64_t> IntBits(const Json& weights) {
  LATTE_RETURN_IF_ERROR(Demand(weights, "type", "int"));
  return IntIn(weights, "num_bits", 1, 64);
}

Result<int64_t> GroupOfStrategy(const Json& weights, std::string_view strategy) {
  if (strategy == "channel") return QuantScheme::kAll;
  if (strategy == "group") return GroupSize(weights);
  return NotRead(weights, "strategy", "channel or group", fmt::format("'{}'", strategy));
}

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

JsonOut CompressedTensorsConfig(GroupToWrite group, const std::vector<std::string>& kept) {
  JsonOut ignore = {"lm_head", "re:.*mlp\\.gate$", "re:.*indexer.*", "re:.*eh_proj$",
                    "re:.*shared_head.*"};
  for (const std::string& module : group.ignore) ignore.push_back(module);
  for (const std::string& module : kept) ignore.push_back(module);
  return {{"config_groups",
           {{"group_0",
             {{"input_activations", std::move(group.activations)},
              {"output_activations", nullptr},
              {"targets", {"Linear"}},
              {"weights", std::move(group.weights)}}}}},
          {"format", group.format},
          {"ignore", std::move(ignore)},
          {"kv_cache_scheme", nullptr},
          {"quant_method", kCompressedTensors},
          {"quantization_status", "compressed"}};
}

}  // namespace latte
