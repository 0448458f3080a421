#include "src/checkpoint/config/config_layers.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace latte {
namespace {

// A list of two allowed words: the result tells which items are the `yes` word.
Result<std::vector<bool>> ParseWords(const ConfigReader& in, std::string_view key, int64_t layers,
                                     std::string_view yes, std::string_view no) {
  std::vector<bool> out;
  const std::optional<Json> list = in.Find(key);
  if (!list) return out;
  const std::string expected =
      fmt::format("a list of {} (num_hidden_layers) words, '{}' or '{}'", layers, yes, no);
  if (!list->is_array()) return in.Bad(key, expected, "another type");
  if (static_cast<int64_t>(list->size()) != layers)
    return in.Bad(key, expected, fmt::format("{} items", list->size()));
  for (size_t i = 0; i < list->size(); ++i) {
    LATTE_ASSIGN_OR_RETURN(const std::string word, list->At(i).AsString());
    if (word != yes && word != no) return in.Bad(key, expected, word);
    out.push_back(word == yes);
  }
  return out;
}

Result<std::vector<bool>> ParsePattern(const ConfigReader& in, int64_t layers) {
  constexpr std::string_view kKey = "index_topk_pattern";
  LATTE_ASSIGN_OR_RETURN(const std::string pattern, in.StringOr(kKey, ""));
  std::vector<bool> out;
  if (pattern.empty()) return out;
  if (static_cast<int64_t>(pattern.size()) != layers ||
      pattern.find_first_not_of("FS") != std::string::npos)
    return in.Bad(kKey, fmt::format("{} (num_hidden_layers) letters F or S", layers), pattern);
  for (const char letter : pattern) out.push_back(letter == 'F');
  return out;
}

}  // namespace

Result<std::vector<bool>> ParseMoeLayers(const ConfigReader& in, int64_t layers) {
  return ParseWords(in, "mlp_layer_types", layers, "sparse", "dense");
}

Result<std::vector<bool>> ParseIndexedLayers(const ConfigReader& in, int64_t layers) {
  LATTE_ASSIGN_OR_RETURN(std::vector<bool> owners,
                         ParseWords(in, "indexer_types", layers, "full", "shared"));
  if (owners.empty()) {
    LATTE_ASSIGN_OR_RETURN(owners, ParsePattern(in, layers));
  }
  LATTE_ASSIGN_OR_RETURN(const int64_t freq, in.IntOr("index_topk_freq", {1, layers}, 1));
  LATTE_ASSIGN_OR_RETURN(const int64_t offset, in.IntOr("index_skip_topk_offset", {0, layers}, 2));
  if (owners.empty() && freq > 1)
    for (int64_t i = 0; i < layers; ++i)
      owners.push_back(std::max<int64_t>(i - offset + 1, 0) % freq == 0);
  if (!owners.empty() && !owners.front())
    return in.Bad("indexer_types", "a first layer that owns an indexer", "one that shares");
  return owners;
}

}  // namespace latte
