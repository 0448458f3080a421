#include "src/checkpoint/config/config_reader.h"

#include <utility>

#include <fmt/format.h>

#include "src/text/unicode/printable.h"

namespace latte {

ConfigReader::ConfigReader(Json object) : where_(object.path()) {
  objects_.push_back(std::move(object));
}

ConfigReader::ConfigReader(std::vector<Json> objects, std::string where)
    : objects_(std::move(objects)), where_(std::move(where)) {}

std::optional<Json> ConfigReader::Find(std::string_view key) const {
  for (const Json& object : objects_)
    if (auto value = object.Find(key)) return value;
  return std::nullopt;
}

bool ConfigReader::IsNull(std::string_view key) const {
  bool is_null = false;
  for (const Json& object : objects_) {
    const Status visited =
        object.ForEachMember([&](const std::string& name, const Json& value) -> Status {
          const bool typed = value.is_object() || value.is_array() || value.is_string() ||
                             value.is_number() || value.is_bool();
          is_null = is_null || (name == key && !typed);
          return {};
        });
    if (!visited) return false;
  }
  return is_null;
}

Result<int64_t> ConfigReader::Int(std::string_view key, IntRange range) const {
  const std::optional<Json> value = Find(key);
  if (!value) return Missing(key);
  LATTE_ASSIGN_OR_RETURN(const int64_t number, value->AsInt());
  if (number < range.min || number > range.max)
    return Bad(key, fmt::format("an integer from {} to {}", range.min, range.max),
               fmt::format("{}", number));
  return number;
}

Result<double> ConfigReader::Number(std::string_view key, NumberRange range) const {
  const std::optional<Json> value = Find(key);
  if (!value) return Missing(key);
  LATTE_ASSIGN_OR_RETURN(const double number, value->AsDouble());
  if (!(number >= range.min && number <= range.max))
    return Bad(key, fmt::format("a number from {} to {}", range.min, range.max),
               fmt::format("{}", number));
  return number;
}

Result<int64_t> ConfigReader::IntOr(std::string_view key, IntRange range, int64_t fallback) const {
  return Find(key) ? Int(key, range) : Result<int64_t>(fallback);
}

Result<double> ConfigReader::NumberOr(std::string_view key, NumberRange range,
                                      double fallback) const {
  return Find(key) ? Number(key, range) : Result<double>(fallback);
}

Result<bool> ConfigReader::BoolOr(std::string_view key, bool fallback) const {
  const std::optional<Json> value = Find(key);
  return value ? value->AsBool() : Result<bool>(fallback);
}

Result<std::string> ConfigReader::StringOr(std::string_view key, std::string fallback) const {
  const std::optional<Json> value = Find(key);
  return value ? value->AsString() : Result<std::string>(std::move(fallback));
}

Result<int64_t> ConfigReader::IntOrDefault(std::string_view key, IntRange range,
                                           int64_t class_default) const {
  return class_default == 0 ? Int(key, range) : IntOr(key, range, class_default);
}

Result<int64_t> ConfigReader::IntOrNone(std::string_view key, IntRange range,
                                        int64_t class_default) const {
  return IsNull(key) ? Result<int64_t>(0) : IntOr(key, range, class_default);
}

tl::unexpected<Error> ConfigReader::Bad(std::string_view key, std::string_view expected,
                                        std::string_view found) const {
  return Corrupt(fmt::format("{}: expected {}, found {}", PathOf(key), expected, Printable(found)));
}

std::string ConfigReader::PathOf(std::string_view key) const {
  if (const std::optional<Json> value = Find(key)) return value->path();
  return fmt::format("{}: '{}'", where_, key);
}

tl::unexpected<Error> ConfigReader::Missing(std::string_view key) const {
  return Corrupt(fmt::format("{}: key '{}' is missing", where_, key));
}

}  // namespace latte
