#include "src/checkpoint/config/generation_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/checkpoint/config/config_reader.h"

namespace latte {
namespace {

// `key` in (0, max], as SamplingParams::Validate requires.
Result<double> Positive(const ConfigReader& in, std::string_view key, double max) {
  const auto value = in.Find(key);
  if (!value) return 1.0;
  LATTE_ASSIGN_OR_RETURN(const double number, value->AsDouble());
  if (number > 0 && number <= max) return number;
  return in.Bad(key, fmt::format("a number above 0, at most {}", max), fmt::format("{}", number));
}

}  // namespace

void GenerationDefaults::ApplyTo(SamplingParams* params) const {
  params->temperature = temperature;
  params->top_k = top_k;
  params->top_p = top_p;
  params->min_p = min_p;
  params->repetition_penalty = repetition_penalty;
}

Result<GenerationDefaults> LoadGenerationDefaults(const std::string& dir) {
  GenerationDefaults out;
  const std::string path = dir + "/generation_config.json";
  if (!Exists(path)) return out;
  out.recommended = true;
  LATTE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 1 << 20));
  LATTE_ASSIGN_OR_RETURN(const Json config, Json::Parse(text, path));
  if (!config.is_object()) return Corrupt(path + ": expected an object, found another type");
  const ConfigReader in(config);
  LATTE_ASSIGN_OR_RETURN(out.repetition_penalty, Positive(in, "repetition_penalty", 100));
  LATTE_ASSIGN_OR_RETURN(const bool sample, in.BoolOr("do_sample", false));
  if (!sample) return out;
  LATTE_ASSIGN_OR_RETURN(out.temperature, in.NumberOr("temperature", {0, 100}, 1.0));
  LATTE_ASSIGN_OR_RETURN(out.top_k, in.IntOr("top_k", {-1, INT64_MAX}, 0));
  out.top_k = std::max<int64_t>(out.top_k, 0);
  LATTE_ASSIGN_OR_RETURN(out.top_p, Positive(in, "top_p", 1));
  LATTE_ASSIGN_OR_RETURN(out.min_p, in.NumberOr("min_p", {0, 1}, 0.0));
  return out;
}

}  // namespace latte
