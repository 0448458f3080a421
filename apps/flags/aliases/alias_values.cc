#include "apps/flags/aliases/alias_values.h"

#include <charconv>
#include <cmath>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "apps/flags/seed.h"
#include "src/base/strings.h"

namespace latte {
namespace {

AliasValue Default() { return {}; }
AliasValue Words(const std::string& flag, std::string_view value) {
  return {{flag, std::string(value)}};
}

using ValueNames = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Our name for `value`; `value` itself if the list has none: the flag's own check judges it.
std::string_view Translated(ValueNames names, std::string_view value) {
  for (const auto& [theirs, ours] : names)
    if (theirs == value) return ours;
  return value;
}

bool IsDefault(const std::string& value) { return value == "auto" || value == "-1"; }

// "25.6k" → 25600; none for other texts.
std::optional<int64_t> ParseCount(const std::string& value) {
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  const std::string_view suffix(rest, static_cast<size_t>(end - rest));
  constexpr std::pair<std::string_view, double> kSuffixes[] = {
      {"", 1},     {"k", 1e3},     {"m", 1e6},         {"g", 1e9},
      {"K", 1024}, {"M", 1048576}, {"G", 1073741824.0}};
  for (const auto& [name, factor] : kSuffixes) {
    if (suffix != name) continue;
    const double count = number * factor;
    if (count != std::floor(count) || count > 9e15) return std::nullopt;
    return static_cast<int64_t>(count);
  }
  return std::nullopt;
}

}  // namespace

Result<AliasValue> ConvertCount(const std::string& flag, const std::string& value) {
  if (IsDefault(value)) return Default();
  if (const auto count = ParseCount(value)) return Words(flag, fmt::to_string(*count));
  return InvalidArgument(
      fmt::format("expected a whole number, such as 131072, 128K or 131k, found '{}'", value));
}

Result<AliasValue> ConvertDType(const std::string& flag, const std::string& value) {
  if (value == "auto") return Default();
  return Words(flag, Translated({{"bfloat16", "bf16"},
                                 {"float16", "f16"},
                                 {"half", "f16"},
                                 {"fp16", "f16"},
                                 {"float", "f32"},
                                 {"float32", "f32"},
                                 {"fp32", "f32"}},
                                value));
}

Result<AliasValue> ConvertCacheDType(const std::string& flag, const std::string& value) {
  if (value == "auto") return Default();
  if (value == "fp8_e5m2" || value == "fp8_inc")
    return Unsupported(fmt::format("expected fp8 (e4m3), found '{}', which Latte lacks", value));
  return Words(flag, Translated({{"fp8_e4m3", "fp8"},
                                 {"fp8_ds_mla", "fp8"},
                                 {"bfloat16", "bf16"},
                                 {"float16", "f16"},
                                 {"half", "f16"},
                                 {"float32", "f32"},
                                 {"q8_0", "int8"}},
                                value));
}

Result<AliasValue> ConvertChunk(const std::string& flag, const std::string& value) {
  if (value == "-1")
    return Unsupported(
        "expected the tokens of a step, found -1; prompts are always computed in chunks");
  return ConvertCount(flag, value);
}

Result<AliasValue> ConvertCommaList(const std::string& flag, const std::string& value) {
  AliasValue out;
  for (const std::string_view piece : Pieces(value, ',')) {
    out.words.push_back(flag);
    out.words.emplace_back(piece);
  }
  return out;
}

Result<AliasValue> ConvertSeed(const std::string& flag, const std::string& value) {
  return Words(flag, value == "-1" ? fmt::to_string(DrawSeed()) : value);
}

Result<AliasValue> ConvertNuma(const std::string& flag, const std::string& value) {
  if (value == "isolate" || value == "numactl")
    return Unsupported(fmt::format(
        "expected first-touch or interleave, found '{}'; run latte under numactl instead", value));
  return Words(flag, value == "distribute" ? "interleave" : value);
}

Result<AliasValue> ConvertHost(const std::string& flag, const std::string& value) {
  if (value.ends_with(".sock")) return AliasValue{{"--uds", value, "--host", ""}};
  return Words(flag, value);
}

Result<AliasValue> ConvertLogLevel(const std::string& flag, const std::string& value) {
  return Words(flag, Translated({{"trace", "debug"},
                                 {"DEBUG", "debug"},
                                 {"INFO", "info"},
                                 {"warn", "warning"},
                                 {"WARNING", "warning"},
                                 {"ERROR", "error"},
                                 {"critical", "error"},
                                 {"CRITICAL", "error"}},
                                value));
}

Result<AliasValue> ConvertDevice(const std::string& flag, const std::string& value) {
  return Words(flag, Translated({{"auto", "cpu"}, {"none", "cpu"}}, value));
}

Result<AliasValue> OnlySafetensors(const std::string&, const std::string& value) {
  if (value == "auto" || value == "safetensors") return Default();
  return Unsupported(fmt::format("expected safetensors, found '{}'", value));
}

}  // namespace latte
