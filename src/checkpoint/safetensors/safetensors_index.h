// Parses model.safetensors.index.json, which maps tensors to shards. Refuses names that could leave
// the checkpoint's folder. Reads only the text that it is given.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

// Name of a shard → names of its tensors, according to the index.
using ShardMap = std::map<std::string, std::vector<std::string>>;

// The `weight_map` of an index, grouped by shard. `path` is used in messages.
// Errors: kCorrupt naming path and tensor.
[[nodiscard]] Result<ShardMap> ParseSafetensorsIndex(std::string_view text,
                                                     const std::string& path);

}  // namespace latte
