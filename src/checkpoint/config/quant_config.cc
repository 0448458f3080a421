#include "src/checkpoint/config/quant_config.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "src/checkpoint/config/config_reader.h"
#include "src/checkpoint/config/foreign_quant.h"
#include "src/text/unicode/printable.h"

namespace latte {
namespace {

constexpr IntRange kBlock = {1, int64_t{1} << 20};

tl::unexpected<Error> NotRead(const Json& json, std::string_view key, std::string_view expected,
                              std::string_view found) {
  return Unsupported(fmt::format("{}.{}: expected {}, found {}", json.path(), key, expected,
                                 Printable(std::string(found))));
}

// Requires `expected` as the value of a key, if the key is present.
Status Demand(const Json& json, std::string_view key, std::string_view expected) {
  LATTE_ASSIGN_OR_RETURN(const std::string found, json.GetStringOr(key, std::string(expected)));
  if (found != expected) return NotRead(json, key, expected, fmt::format("'{}'", found));
  return {};
}

Result<QuantConfig> ParseF8(const Json& json) {
  QuantConfig quant = {.method = QuantMethod::kF8};
  LATTE_RETURN_IF_ERROR(Demand(json, "fmt", "e4m3"));
  const std::optional<Json> block = json.Find("weight_block_size");
  if (!block) return quant;
  if (!block->is_array() || block->size() != 2)
    return Corrupt(fmt::format("{}: expected two numbers [rows, columns]", block->path()));
  LATTE_ASSIGN_OR_RETURN(quant.block_rows, block->At(0).AsInt());
  LATTE_ASSIGN_OR_RETURN(quant.block_columns, block->At(1).AsInt());
  const auto in_range = [](int64_t size) { return size >= kBlock.min && size <= kBlock.max; };
  if (!in_range(quant.block_rows) || !in_range(quant.block_columns))
    return Corrupt(fmt::format("{}: expected two numbers of at least 1, found [{}, {}]",
                               block->path(), quant.block_rows, quant.block_columns));
  return quant;
}

// The number of columns that share a scale. It is even, because two 4-bit values share a byte.
Result<int64_t> ParseGroup(const Json& json) {
  LATTE_ASSIGN_OR_RETURN(const int64_t group, ConfigReader(json).Int("group_size", {-1, 1 << 20}));
  if (group == -1) return IntScheme::kWholeRow;
  if (group > 0 && group % 2 == 0) return group;
  return Corrupt(fmt::format("{}.group_size: expected -1 or an even number above 0, found {}",
                             json.path(), group));
}

// The "weights" of one config group.
Result<IntScheme> ParseScheme(const Json& weights, bool packed) {
  IntScheme scheme = {.packed = packed};
  LATTE_RETURN_IF_ERROR(Demand(weights, "type", "int"));
  LATTE_ASSIGN_OR_RETURN(scheme.bits, ConfigReader(weights).Int("num_bits", {1, 64}));
  if (scheme.bits != 8 && !(packed && scheme.bits == 4))
    return NotRead(weights, "num_bits", packed ? "4 or 8" : "8", fmt::format("{}", scheme.bits));
  LATTE_ASSIGN_OR_RETURN(const std::string strategy, weights.GetString("strategy"));
  if (strategy == "channel") {
    scheme.group = IntScheme::kWholeRow;
  } else if (strategy == "tensor" && !packed) {
    scheme.group = IntScheme::kWholeMatrix;
  } else if (strategy == "group") {
    LATTE_ASSIGN_OR_RETURN(scheme.group, ParseGroup(weights));
  } else {
    return NotRead(weights, "strategy", "channel or group", fmt::format("'{}'", strategy));
  }
  return scheme;
}

Result<bool> IsPacked(const Json& json, std::string_view format) {
  if (format == "pack-quantized") return true;
  if (format == "int-quantized" || format == "naive-quantized") return false;
  return NotRead(json, "format", "int-quantized or pack-quantized", fmt::format("'{}'", format));
}

// One member of config_groups; nullopt for one that quantises only activations.
Result<std::optional<IntScheme>> ParseGroupOfModules(const Json& json, const std::string& format) {
  const std::optional<Json> activations = json.Find("input_activations");
  if (activations) {
    // Static activation scales are tensors that Latte does not read.
    LATTE_ASSIGN_OR_RETURN(const bool dynamic, activations->GetBoolOr("dynamic", false));
    if (!dynamic) return NotRead(*activations, "dynamic", "true", "false");
  }
  const std::optional<Json> weights = json.Find("weights");
  if (!weights) return std::nullopt;
  LATTE_ASSIGN_OR_RETURN(const std::string own, json.GetStringOr("format", format));
  LATTE_ASSIGN_OR_RETURN(const bool packed, IsPacked(json, own));
  LATTE_ASSIGN_OR_RETURN(const IntScheme scheme, ParseScheme(*weights, packed));
  return scheme;
}

Result<QuantConfig> ParseCompressedTensors(const Json& json) {
  QuantConfig quant = {.method = QuantMethod::kCompressedTensors};
  LATTE_ASSIGN_OR_RETURN(const std::string format, json.GetString("format"));
  if (const std::optional<Json> cache = json.Find("kv_cache_scheme"))
    return Unsupported(fmt::format(
        "{}: expected null, found a scheme: scales of a cache are not read", cache->path()));
  LATTE_ASSIGN_OR_RETURN(const Json groups, json.Get("config_groups"));
  LATTE_RETURN_IF_ERROR(groups.ForEachMember([&](const std::string&, const Json& group) -> Status {
    LATTE_ASSIGN_OR_RETURN(const auto scheme, ParseGroupOfModules(group, format));
    if (scheme) quant.schemes.push_back(*scheme);
    return {};
  }));
  if (quant.schemes.empty())
    return Corrupt(
        fmt::format("{}: expected an object with at least one group of weights", groups.path()));
  return quant;
}

// The keys that AWQ and GPTQ share.
Result<QuantConfig> ParseFourBits(const Json& json, QuantMethod method) {
  QuantConfig quant = {.method = method};
  LATTE_ASSIGN_OR_RETURN(const int64_t bits, ConfigReader(json).Int("bits", {1, 64}));
  if (bits != 4) return NotRead(json, "bits", "4", fmt::format("{}", bits));
  LATTE_ASSIGN_OR_RETURN(const int64_t group, ParseGroup(json));
  quant.schemes = {{.bits = 4, .packed = true, .group = group}};
  return quant;
}

Result<QuantConfig> ParseAwq(const Json& json) {
  LATTE_ASSIGN_OR_RETURN(const QuantConfig quant, ParseFourBits(json, QuantMethod::kAwq));
  // Some files spell it GEMM.
  LATTE_ASSIGN_OR_RETURN(const std::string version, json.GetStringOr("version", "gemm"));
  if (version != "gemm" && version != "GEMM")
    return NotRead(json, "version", "gemm", fmt::format("'{}'", version));
  return quant;
}

Result<QuantConfig> ParseGptq(const Json& json) {
  LATTE_ASSIGN_OR_RETURN(QuantConfig quant, ParseFourBits(json, QuantMethod::kGptq));
  LATTE_ASSIGN_OR_RETURN(quant.symmetric, json.GetBoolOr("sym", false));
  LATTE_ASSIGN_OR_RETURN(const std::string layout, json.GetStringOr("checkpoint_format", "gptq"));
  if (layout != "gptq" && layout != "gptq_v2")
    return NotRead(json, "checkpoint_format", "gptq or gptq_v2", fmt::format("'{}'", layout));
  quant.zero_minus_one = layout == "gptq";
  LATTE_ASSIGN_OR_RETURN(const bool head, json.GetBoolOr("lm_head", false));
  if (head) return NotRead(json, "lm_head", "false", "true");
  return quant;
}

Result<QuantConfig> ParseByMethod(const Json& json) {
  LATTE_ASSIGN_OR_RETURN(const std::string method, json.GetStringOr("quant_method", "unnamed"));
  if (method == "fp8") return ParseF8(json);
  if (method == "compressed-tensors") return ParseCompressedTensors(json);
  if (method == "awq") return ParseAwq(json);
  if (method == "gptq") return ParseGptq(json);
  return Unsupported(fmt::format(
      "{}: '{}' checkpoints are not supported: expected fp8, compressed-tensors, awq or gptq, or "
      "weights that are not quantised",
      json.path(), Printable(method)));
}

}  // namespace

bool QuantConfig::Repacks() const {
  if (method == QuantMethod::kAwq || method == QuantMethod::kGptq) return true;
  return std::any_of(schemes.begin(), schemes.end(),
                     [](const IntScheme& s) { return s.packed && s.bits == 8; });
}

Result<QuantConfig> ParseQuantConfig(const Json& config) {
  LATTE_RETURN_IF_ERROR(CheckNotForeign(config));
  const std::optional<Json> json = config.Find("quantization_config");
  if (!json) return QuantConfig();
  if (!json->is_object())
    return Corrupt(fmt::format("{}: expected an object, found another type", json->path()));
  return ParseByMethod(*json).map_error([](Error error) {
    if (error.code == Code::kUnsupported) error.message += fmt::format("; {}", CopyToTake());
    return error;
  });
}

}  // namespace latte
