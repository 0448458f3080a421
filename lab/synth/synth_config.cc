#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lab/synth/shapes.h"
#include "lab/synth/synth.h"
#include "src/base/check.h"
#include "src/base/json_out.h"
#include "src/base/one_of.h"
#include "src/base/strings.h"
#include "src/checkpoint/config/model_config.h"
#include "src/jobs/convert/quant_scheme.h"

namespace latte {
namespace {

// The published shapes by name. A member "like" of one names the shape that its other members
// change.
const JsonOut& Shapes() {
  static const JsonOut shapes = [] {
    Result<JsonOut> parsed = ParseToEdit(ShapesJson(), "shapes.json");
    LATTE_CHECK(parsed.has_value(), "{}", parsed.error().message);
    return *std::move(parsed);
  }();
  return shapes;
}

Result<JsonOut> ConfigOfShape(const std::string& name) {
  const auto found = Shapes().find(name);
  if (found == Shapes().end())
    return InvalidArgument(
        fmt::format("shape: expected one of {}, found '{}'", fmt::join(SynthShapes(), ", "), name));
  JsonOut shape = *found;
  const auto like = shape.find("like");
  if (like == shape.end()) return shape;
  LATTE_ASSIGN_OR_RETURN(JsonOut config, ConfigOfShape(like->get<std::string>()));
  shape.erase("like");
  config.update(shape);
  return config;
}

// Replaces what the spec sets. Ids that a smaller vocabulary lacks become null.
void ApplySpec(const SynthSpec& spec, JsonOut& config) {
  const auto set = [&](const char* key, const std::optional<int64_t>& number) {
    if (number && config.contains(key)) config[key] = *number;
  };
  config["torch_dtype"] = spec.format.f32() ? "float32" : "bfloat16";
  set("vocab_size", spec.vocab);
  set("num_hidden_layers", spec.layers);
  set("num_nextn_predict_layers", spec.mtp);
  set("n_routed_experts", spec.experts);
  set("first_k_dense_replace", spec.dense);
  if (const auto dense = config.find("first_k_dense_replace"); dense != config.end())
    *dense = std::min(dense->get<int64_t>(), config["num_hidden_layers"].get<int64_t>());
  for (const char* const key : {"bos_token_id", "eos_token_id"})
    if (config[key].is_number() && config[key] >= config["vocab_size"]) config[key] = nullptr;
}

Result<int64_t> ParseNumber(std::string_view key, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return InvalidArgument(fmt::format("{}: expected a number of at least 0, found '{}'", key, text));
}

Status SetPart(std::string_view key, std::string_view value, SynthSpec& spec) {
  if (key == "dtype") {
    LATTE_ASSIGN_OR_RETURN(spec.format, ParseSynthFormat(value));
    return {};
  }
  LATTE_ASSIGN_OR_RETURN(const int64_t number, ParseNumber(key, value));
  if (key == "seed") {
    spec.seed = static_cast<uint64_t>(number);
    return {};
  }
  const std::pair<std::string_view, std::optional<int64_t>*> kNumbers[] = {
      {"layers", &spec.layers},
      {"dense", &spec.dense},
      {"vocab", &spec.vocab},
      {"experts", &spec.experts},
      {"mtp", &spec.mtp}};
  for (const auto& [name, part] : kNumbers) {
    if (name != key) continue;
    *part = number;
    return {};
  }
  return InvalidArgument(fmt::format(
      "synthetic model: expected layers, dense, vocab, experts, mtp, dtype or seed, found '{}'",
      key));
}

}  // namespace

std::vector<std::string> SynthShapes() {
  std::vector<std::string> names;
  for (const auto& [name, shape] : Shapes().items()) names.push_back(name);
  return names;
}

std::string SynthFormats() {
  std::vector<std::string_view> names = {"bf16", "f32"};
  for (const WeightFormat* format : WrittenFormats()) names.push_back(format->encoder->name);
  return OneOf(names);
}

Result<SynthFormat> ParseSynthFormat(std::string_view text) {
  if (text == "bf16") return SynthFormat{};
  if (text == "f32") return SynthFormat{.plain = DType::kF32};
  if (const auto scheme = FindWrittenScheme(text)) return SynthFormat{.quant = scheme};
  return InvalidArgument(fmt::format("dtype: expected {}, found '{}'", SynthFormats(), text));
}

Result<SynthSpec> ParseSynthSpec(std::string_view text) {
  SynthSpec spec;
  const size_t colon = text.find(':');
  spec.shape = text.substr(0, colon);
  LATTE_RETURN_IF_ERROR(ConfigOfShape(spec.shape));
  if (colon == std::string_view::npos) return spec;
  std::string_view rest = text.substr(colon + 1);
  while (!rest.empty()) {
    const std::string_view part = TakePiece(&rest, ',');
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      return InvalidArgument(fmt::format("synthetic model: expected key=value, found '{}'", part));
    LATTE_RETURN_IF_ERROR(SetPart(part.substr(0, equals), part.substr(equals + 1), spec));
  }
  return spec;
}

Result<JsonOut> SynthConfig(const SynthSpec& spec) {
  LATTE_ASSIGN_OR_RETURN(JsonOut config, ConfigOfShape(spec.shape));
  ApplySpec(spec, config);
  LATTE_ASSIGN_OR_RETURN(const Json parsed, Json::Parse(Dump(config), spec.shape));
  // ParseModelConfig checks the numbers.
  if (const auto checked = ParseModelConfig(parsed); !checked)
    return InvalidArgument("no such model: " + checked.error().message);
  return config;
}

}  // namespace latte
