#include "src/checkpoint/config/quant_config.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "src/base/one_of.h"
#include "src/checkpoint/config/foreign_quant.h"
#include "src/checkpoint/formats/common/compressed_tensors.h"
#include "src/checkpoint/formats/common/config_keys.h"
#include "src/checkpoint/formats/formats.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

// The format of compressed-tensors that `spelling` names.
Result<const WeightFormat*> FindGroupFormat(const Json& json, std::string_view spelling) {
  std::vector<std::string_view> known;
  for (const WeightFormat* format : kWeightFormats) {
    if (std::ranges::find(format->group_formats, spelling) != format->group_formats.end())
      return format;
    if (!format->group_formats.empty()) known.push_back(format->group_formats.front());
  }
  return NotRead(json, "format", OneOf(known), fmt::format("'{}'", spelling));
}

// One member of config_groups; nullopt for one that quantises only activations.
Result<std::optional<QuantScheme>> ParseGroup(const Json& json, const std::string& format) {
  const std::optional<Json> activations = json.Find("input_activations");
  if (activations) {
    // Static activation scales are tensors that Latte does not read.
    LATTE_ASSIGN_OR_RETURN(const bool dynamic, activations->GetBoolOr("dynamic", false));
    if (!dynamic) return NotRead(*activations, "dynamic", "true", "false");
  }
  const std::optional<Json> weights = json.Find("weights");
  if (!weights) return std::nullopt;
  LATTE_ASSIGN_OR_RETURN(const std::string own, json.GetStringOr("format", format));
  LATTE_ASSIGN_OR_RETURN(const WeightFormat* found, FindGroupFormat(json, own));
  LATTE_ASSIGN_OR_RETURN(QuantScheme scheme, found->parse(*weights));
  scheme.format = found;
  return scheme;
}

Result<QuantConfig> ParseGroups(const Json& json) {
  QuantConfig quant;
  LATTE_ASSIGN_OR_RETURN(const std::string format, json.GetString("format"));
  if (const std::optional<Json> cache = json.Find("kv_cache_scheme"))
    return Unsupported(fmt::format(
        "{}: expected null, found a scheme: scales of a cache are not read", cache->path()));
  LATTE_ASSIGN_OR_RETURN(const Json groups, json.Get("config_groups"));
  LATTE_RETURN_IF_ERROR(groups.ForEachMember([&](const std::string&, const Json& group) -> Status {
    LATTE_ASSIGN_OR_RETURN(const auto scheme, ParseGroup(group, format));
    if (scheme) quant.schemes.push_back(*scheme);
    return {};
  }));
  if (quant.schemes.empty())
    return Corrupt(
        fmt::format("{}: expected an object with at least one group of weights", groups.path()));
  return quant;
}

// The first format of the method in `json`; null if none has it.
const WeightFormat* FindMethod(const Json& json) {
  const std::optional<Json> stored = json.Find("quant_method");
  if (!stored || !stored->is_string()) return nullptr;
  const std::string method = stored->AsString().value_or("");
  for (const WeightFormat* format : kWeightFormats)
    if (!method.empty() && format->method == method) return format;
  return nullptr;
}

// `format`: as FindMethod returns it.
Result<QuantConfig> ParseByMethod(const WeightFormat* format, const Json& json) {
  if (format == nullptr) {
    LATTE_ASSIGN_OR_RETURN(const std::string method, json.GetStringOr("quant_method", "unnamed"));
    return Unsupported(
        fmt::format("{}: '{}' checkpoints are not supported: expected {}, or weights that are not "
                    "quantised",
                    json.path(), Printable(method), QuantMethods()));
  }
  if (!format->group_formats.empty()) return ParseGroups(json);
  LATTE_ASSIGN_OR_RETURN(QuantScheme scheme, format->parse(json));
  scheme.format = format;
  return QuantConfig{.schemes = {scheme}};
}

}  // namespace

const WeightFormat& QuantConfig::format() const {
  return schemes.empty() ? kPlainWeights : *schemes.front().format;
}

bool QuantConfig::Repacks() const {
  return std::ranges::any_of(schemes, [](const QuantScheme& scheme) {
    return scheme.format->repacks != nullptr && scheme.format->repacks(scheme);
  });
}

std::string QuantMethods() {
  std::vector<std::string_view> methods;
  for (const WeightFormat* format : kWeightFormats)
    if (!format->method.empty() && std::ranges::find(methods, format->method) == methods.end())
      methods.push_back(format->method);
  return OneOf(methods);
}

Result<QuantConfig> ParseQuantConfig(const Json& config) {
  const std::optional<Json> json = config.Find("quantization_config");
  const WeightFormat* format = json && json->is_object() ? FindMethod(*json) : nullptr;
  if (format == nullptr) LATTE_RETURN_IF_ERROR(CheckNotForeign(config));
  if (!json) return QuantConfig();
  if (!json->is_object())
    return Corrupt(fmt::format("{}: expected an object, found another type", json->path()));
  return ParseByMethod(format, *json).map_error([](Error error) {
    if (error.code == Code::kUnsupported) error.message += fmt::format("; {}", CopyToTake());
    return error;
  });
}

}  // namespace latte
