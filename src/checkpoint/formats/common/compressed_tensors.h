// Parts that the formats of compressed-tensors share: one quantization_config for all, whose groups
// name the format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/base/json_out.h"

namespace latte {

inline constexpr std::string_view kCompressedTensors = "compressed-tensors";

// num_bits of the "weights" of a group whose values are integers. Errors: kCorrupt, kUnsupported.
[[nodiscard]] Result<int64_t> IntBits(const Json& weights);

// The columns that share a scale under the strategies channel and group; QuantScheme::kAll: all.
// Errors: kCorrupt, kUnsupported.
[[nodiscard]] Result<int64_t> GroupOfStrategy(const Json& weights, std::string_view strategy);

// Describes integer values; `strategy` names the elements that share a scale.
JsonOut QuantArgs(int64_t bits, std::string_view strategy, bool dynamic, const JsonOut& group_size);

// A config with one group. `kept`: modules that are not quantised.
struct GroupToWrite {
  std::string_view format;
  JsonOut weights;
  JsonOut activations = nullptr;
  std::vector<std::string> ignore = {};  // in addition to the head, router and indexer
};
JsonOut CompressedTensorsConfig(GroupToWrite group, const std::vector<std::string>& kept);

}  // namespace latte
