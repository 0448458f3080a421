#include "src/checkpoint/config/rope_config.h"

#include <cmath>

#include <fmt/format.h>

#include "src/checkpoint/config/config_reader.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr NumberRange kTheta = {2, 1e15};  // above 1, because code divides by its logarithm
constexpr NumberRange kFactor = {1, 1e6};
constexpr NumberRange kBeta = {1e-3, 1e6};
constexpr NumberRange kMscale = {0, 1e3};
constexpr NumberRange kQueryBeta = {0, 1e3};
constexpr IntRange kOriginalMax = {1, int64_t{1} << 40};
constexpr IntRange kLongRopeMax = {2, kOriginalMax.max};  // its logarithm is a divisor
constexpr NumberRange kPairFactor = {1e-6, 1e6};
constexpr NumberRange kAttentionFactor = {1e-6, 1e6};

Result<std::string> ScalingType(const ConfigReader& in) {
  LATTE_ASSIGN_OR_RETURN(const std::string old_spelling, in.StringOr("type", "default"));
  return in.StringOr("rope_type", old_spelling);
}

Status ParseYarn(const ConfigReader& in, RopeConfig& rope) {
  rope.yarn = true;
  LATTE_ASSIGN_OR_RETURN(rope.factor, in.Number("factor", kFactor));
  LATTE_ASSIGN_OR_RETURN(rope.original_max,
                         in.Int("original_max_position_embeddings", kOriginalMax));
  LATTE_ASSIGN_OR_RETURN(rope.beta_fast, in.NumberOr("beta_fast", kBeta, rope.beta_fast));
  LATTE_ASSIGN_OR_RETURN(rope.beta_slow, in.NumberOr("beta_slow", kBeta, rope.beta_slow));
  if (rope.beta_fast < rope.beta_slow)
    return in.Bad("beta_fast", fmt::format("at least beta_slow ({})", rope.beta_slow),
                  fmt::format("{}", rope.beta_fast));
  LATTE_ASSIGN_OR_RETURN(rope.mscale, in.NumberOr("mscale", kMscale, rope.mscale));
  LATTE_ASSIGN_OR_RETURN(rope.mscale_all_dim,
                         in.NumberOr("mscale_all_dim", kMscale, rope.mscale_all_dim));
  LATTE_ASSIGN_OR_RETURN(rope.truncate, in.BoolOr("truncate", rope.truncate));
  LATTE_ASSIGN_OR_RETURN(rope.attention_factor,
                         in.NumberOr("attention_factor", kAttentionFactor, 0.0));
  return {};
}

// A list with a factor for each rotated pair.
Result<std::vector<double>> ParsePairFactors(const ConfigReader& in, std::string_view key,
                                             int64_t pairs) {
  const std::string expected =
      fmt::format("a list of {} numbers, one for each pair of qk_rope_head_dim", pairs);
  const std::optional<Json> list = in.Find(key);
  if (!list) return in.Bad(key, expected, "none");
  if (!list->is_array()) return in.Bad(key, expected, "another type");
  if (std::cmp_not_equal(list->size(), pairs))
    return in.Bad(key, expected, fmt::format("{}", list->size()));
  std::vector<double> factors;
  for (size_t i = 0; i < list->size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const double factor, list->At(i).AsDouble());
    if (!(factor >= kPairFactor.min && factor <= kPairFactor.max))
      return in.Bad(key, fmt::format("numbers from {} to {}", kPairFactor.min, kPairFactor.max),
                    fmt::format("{}", factor));
    factors.push_back(factor);
  }
  return factors;
}

// `all`: with the keys outside of the scaling object.
Status ParseLongRope(const ConfigReader& in, const ConfigReader& all, int64_t r, RopeConfig& rope) {
  LATTE_ASSIGN_OR_RETURN(const int64_t longest, all.Int("max_position_embeddings", kOriginalMax));
  LATTE_ASSIGN_OR_RETURN(rope.original_max, all.IntOr("original_max_position_embeddings",
                                                      kLongRopeMax, std::max<int64_t>(longest, 2)));
  LATTE_ASSIGN_OR_RETURN(std::vector<double> long_factors,
                         ParsePairFactors(in, "long_factor", r / 2));
  LATTE_ASSIGN_OR_RETURN(std::vector<double> short_factors,
                         ParsePairFactors(in, "short_factor", r / 2));
  rope.pair_factors = std::move(longest > rope.original_max ? long_factors : short_factors);
  const auto original = static_cast<double>(rope.original_max);
  LATTE_ASSIGN_OR_RETURN(const double extension,
                         in.NumberOr("factor", kFactor, static_cast<double>(longest) / original));
  const double usual =
      extension <= 1 ? 1.0 : std::sqrt(1 + std::log(extension) / std::log(original));
  LATTE_ASSIGN_OR_RETURN(rope.attention_factor,
                         in.NumberOr("attention_factor", kAttentionFactor, usual));
  return {};
}

// The objects that hold scaling keys, the nested form first.
Result<std::vector<Json>> ScalingObjects(const Json& config) {
  std::vector<Json> objects;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const std::optional<Json> object = config.Find(key);
    if (!object) continue;
    if (!object->is_object())
      return Corrupt(fmt::format("{}: expected an object, found another type", object->path()));
    objects.push_back(*object);
  }
  return objects;
}

std::string PathOf(const std::vector<Json>& scaling, const Json& config) {
  return scaling.empty() ? config.path() : scaling.front().path();
}

}  // namespace

Result<RopeConfig> ParseRope(const Json& config, const ClassDefaults& defaults, int64_t r) {
  LATTE_ASSIGN_OR_RETURN(std::vector<Json> objects, ScalingObjects(config));
  const std::string where = PathOf(objects, config);
  const ConfigReader scaling(objects, where);
  objects.push_back(config);
  const ConfigReader all(std::move(objects), config.path());

  RopeConfig rope;
  LATTE_ASSIGN_OR_RETURN(rope.theta, all.NumberOr("rope_theta", kTheta, rope.theta));
  const ConfigReader top(config);
  LATTE_ASSIGN_OR_RETURN(rope.interleaved,
                         top.BoolOr("rope_interleave", defaults.rope_interleaved));
  LATTE_ASSIGN_OR_RETURN(const bool nope, top.BoolOr("mla_use_nope", false));
  rope.rotate = !nope;
  if (rope.rotate && r % 2 != 0)
    return top.Bad("qk_rope_head_dim", "an even number", fmt::format("{}", r));
  LATTE_ASSIGN_OR_RETURN(const std::string type, ScalingType(scaling));
  if (type == "yarn") {
    LATTE_RETURN_IF_ERROR(ParseYarn(scaling, rope));
  } else if (type == "longrope" && defaults.long_rope) {
    LATTE_RETURN_IF_ERROR(ParseLongRope(scaling, all, r, rope));
  } else if (type != "default") {
    return Unsupported(fmt::format("{}: 'rope_type': expected {}yarn or default, found '{}'", where,
                                   defaults.long_rope ? "longrope, " : "", Printable(type)));
  }
  return rope;
}

Status ParseMistralRope(const Json& config, RopeConfig& rope) {
  LATTE_ASSIGN_OR_RETURN(const std::vector<Json> objects, ScalingObjects(config));
  const ConfigReader scaling(objects, PathOf(objects, config));
  LATTE_ASSIGN_OR_RETURN(rope.query_beta, scaling.Number("llama_4_scaling_beta", kQueryBeta));
  LATTE_ASSIGN_OR_RETURN(rope.original_max,
                         scaling.Int("original_max_position_embeddings", kOriginalMax));
  if (rope.attention_factor == 1.0) rope.mscale_all_dim = 0.0;
  return {};
}

}  // namespace latte
