#include "src/checkpoint/formats/common/config_keys.h"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "src/text/unicode/printable.h"

namespace latte {

tl::unexpected<Error> NotRead(const Json& json, std::string_view key, std::string_view expected,
                              std::string_view found) {
  return Unsupported(fmt::format("{}.{}: expected {}, found {}", json.path(), key, expected,
                                 Printable(std::string(found))));
}

Status Demand(const Json& json, std::string_view key, std::string_view expected) {
  LATTE_ASSIGN_OR_RETURN(const std::string found, json.GetStringOr(key, std::string(expected)));
  if (found != expected) return NotRead(json, key, expected, fmt::format("'{}'", found));
  return {};
}

Result<int64_t> IntIn(const Json& json, std::string_view key, int64_t min, int64_t max) {
  const std::optional<Json> value = json.Find(key);
  if (!value) return Corrupt(fmt::format("{}: key '{}' is missing", json.path(), key));
  LATTE_ASSIGN_OR_RETURN(const int64_t number, value->AsInt());
  if (number < min || number > max)
    return Corrupt(fmt::format("{}: expected an integer from {} to {}, found {}", value->path(),
                               min, max, number));
  return number;
}

Result<int64_t> GroupSize(const Json& json) {
  LATTE_ASSIGN_OR_RETURN(const int64_t group, IntIn(json, "group_size", -1, 1 << 20));
  if (group == -1) return QuantScheme::kAll;
  if (group > 0 && group % 2 == 0) return group;
  return Corrupt(fmt::format("{}.group_size: expected -1 or an even number above 0, found {}",
                             json.path(), group));
}

}  // namespace latte
