#include "src/checkpoint/safetensors/safetensors_index.h"

#include <fmt/format.h>

#include "src/base/json.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr JsonLimits kIndexLimits = {.max_depth = 8, .max_elements = 2'000'000};

// A shard must be a plain file name, without a folder.
bool IsFileName(std::string_view name) {
  return !name.empty() && name != "." && name.find("..") == std::string_view::npos &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

Result<ShardMap> ParseSafetensorsIndex(std::string_view text, const std::string& path) {
  const Result<Json> index = Json::Parse(text, path, kIndexLimits);
  if (!index) return Corrupt(Printable(index.error().message, 600));
  LATTE_ASSIGN_OR_RETURN(const Json map, index->Get("weight_map"));
  if (!map.is_object() || map.size() == 0)
    return Corrupt(fmt::format("{}: expected 'weight_map' to name at least one tensor", path));
  ShardMap shards;
  LATTE_RETURN_IF_ERROR(map.ForEachMember([&](const std::string& tensor, const Json& v) -> Status {
    const Result<std::string> file = v.AsString();
    if (!file || !IsFileName(*file))
      return Corrupt(fmt::format(
          "{}: weight_map: tensor '{}': expected the name of a file in this folder, found {}", path,
          Printable(tensor), file ? fmt::format("'{}'", Printable(*file)) : "another type"));
    shards[*file].push_back(tensor);
    return {};
  }));
  return shards;
}

}  // namespace latte
