// model.safetensors.index.json: which shard of a checkpoint holds which tensor. Refuses names that
// could leave the checkpoint's folder. Reads nothing but the text it is given.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

// Name of a shard → names of tensors that the index says it holds.
using ShardMap = std::map<std::string, std::vector<std::string>>;

// The `weight_map` of an index, by shard. `path` is for messages.
// Errors: kCorrupt naming path and tensor.
[[nodiscard]] Result<ShardMap> ParseSafetensorsIndex(std::string_view text,
                                                     const std::string& path);

}  // namespace latte
