#include "src/checkpoint/config/gguf/gguf_minicpm3.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "src/text/unicode/printable.h"

namespace latte {
namespace {

// The values of a vector of F32, which ParseModelConfig counts and checks.
Result<JsonOut> ReadFactors(const GgufKeys& in, const StoredTensors& tensors,
                            const GgufTensorBytes& bytes, std::string_view name) {
  const auto found = tensors.find(name);
  if (found == tensors.end())
    return Corrupt(
        fmt::format("{}: expected the tensor '{}', found none; take a newer copy of the model",
                    in.path(), name));
  const StoredTensor& tensor = found->second;
  constexpr int64_t kMostFactors = 1 << 16;
  if (tensor.dtype_name != "F32" || tensor.shape.size() != 1 || tensor.shape[0] > kMostFactors)
    return Corrupt(fmt::format(
        "{}: tensor '{}': expected up to {} values of F32 in one row, found {} "
        "dimensions of {}; take another copy of the model",
        in.path(), name, kMostFactors, tensor.shape.size(), Printable(tensor.dtype_name)));
  JsonOut out = JsonOut::array();
  const std::span<const std::byte> stored = bytes(tensor);
  for (int64_t i = 0; i < tensor.shape[0]; ++i) {
    float value = 0;
    std::memcpy(&value, stored.data() + static_cast<size_t>(i) * sizeof(float), sizeof(float));
    if (!std::isfinite(value))
      return Corrupt(
          fmt::format("{}: tensor '{}': expected finite values, found {} as value {}; take another "
                      "copy of the model",
                      in.path(), name, value, i));
    out.push_back(ShortDecimal(static_cast<double>(value)));
  }
  return out;
}

}  // namespace

Status ReadMiniCpm3(const GgufKeys& in, const StoredTensors& tensors, const GgufTensorBytes& bytes,
                    JsonOut& json, std::vector<std::string>& assumed) {
  LATTE_ASSIGN_OR_RETURN(json["rope_theta"], in.NumberOr("rope.freq_base", 10000.0));
  LATTE_ASSIGN_OR_RETURN(const std::string_view type, in.StringOr("rope.scaling.type", "longrope"));
  if (type != "longrope")
    return Unsupported(
        fmt::format("{}: expected longrope, found '{}'; take the safetensors copy of the model",
                    in.Where("rope.scaling.type"), Printable(type)));
  JsonOut rope = {{"type", "longrope"}};
  LATTE_ASSIGN_OR_RETURN(rope["long_factor"],
                         ReadFactors(in, tensors, bytes, "rope_factors_long.weight"));
  LATTE_ASSIGN_OR_RETURN(rope["short_factor"],
                         ReadFactors(in, tensors, bytes, "rope_factors_short.weight"));
  LATTE_ASSIGN_OR_RETURN(rope["original_max_position_embeddings"],
                         in.IntOr("rope.scaling.original_context_length",
                                  json["max_position_embeddings"].get<int64_t>()));
  if (in.Has("rope.scaling.attn_factor")) {
    LATTE_ASSIGN_OR_RETURN(rope["attention_factor"], in.Number("rope.scaling.attn_factor"));
  }
  json["rope_scaling"] = std::move(rope);
  constexpr int64_t kPublishedLayers = 62, kPublishedWidth = 2560;
  if (json["num_hidden_layers"] != kPublishedLayers || json["hidden_size"] != kPublishedWidth)
    assumed.push_back(
        "the file does not say how hidden states are scaled: scale_emb 12, scale_depth 1.4 and "
        "dim_model_base 256 are taken, as in the published MiniCPM3-4B");
  return {};
}

Status AddEndOfTurn(const GgufMetadata& metadata, JsonOut& json) {
  LATTE_ASSIGN_OR_RETURN(const auto tokens, metadata.Strings("tokenizer.ggml.tokens"));
  if (!tokens) return {};
  const auto found = std::ranges::find(*tokens, std::string_view("<|im_end|>"));
  if (found == tokens->end()) return {};
  JsonOut& ends = json["eos_token_id"];
  const auto id = static_cast<int64_t>(found - tokens->begin());
  if (std::find(ends.begin(), ends.end(), JsonOut(id)) == ends.end()) ends.push_back(id);
  return {};
}

}  // namespace latte
