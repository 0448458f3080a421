#include "src/checkpoint/safetensors/safetensors_names.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace latte {
namespace {

// Prefixes of the text model's tensors in multi-part models.
struct TextPrefix {
  std::string_view layers;  // replaces "model."
  std::string_view head;    // replaces "lm_head."
  std::string_view drafts;  // replaces "mtp."
};
constexpr TextPrefix kTextPrefixes[] = {
    {"language_model.model.", "language_model.lm_head.", "language_model.mtp."},  // Kimi-K2.5
    {"language.model.", "language.lm_head.", "language.mtp."},                    // DeepSeek-VL2
    {"model.language_model.", "lm_head.", "mtp."},
};

// A tensor of drafting layer `layer`, under a name such as "mtp.0.block.mlp.gate.weight".
struct DraftingTensor {
  int64_t layer = 0;
  std::string name;  // within the layer, as DeepSeek's checkpoints spell it
};

std::optional<DraftingTensor> ParseDraftingName(std::string_view name) {
  const auto skip = [&name](std::string_view prefix) {
    const bool there = name.starts_with(prefix);
    if (there) name.remove_prefix(prefix.size());
    return there;
  };
  skip("model.");
  if (!skip("mtp.")) return {};
  skip("layers.");
  DraftingTensor out;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), out.layer);
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  if (error != std::errc() || out.layer < 0 || !skip(".")) return {};
  if (!skip("block.")) skip("mtp_block.");
  out.name = name == "norm.weight" ? "shared_head.norm.weight" : name;
  return out;
}

// Whether no other layer has a tensor of this name.
bool IsOfDraftingLayer(std::string_view name) {
  return name == "eh_proj.weight" || name == "enorm.weight" || name == "hnorm.weight" ||
         name == "shared_head.norm.weight";
}

// Leaves alone what has the name but is no drafting layer, so that it is refused by its own name.
void NumberDraftingLayers(int64_t layers, StoredTensors& tensors) {
  std::map<std::string, DraftingTensor> found;
  std::set<int64_t> drafting;
  for (const auto& [name, tensor] : tensors) {
    std::optional<DraftingTensor> part = ParseDraftingName(name);
    if (!part) continue;
    if (IsOfDraftingLayer(part->name)) drafting.insert(part->layer);
    found.emplace(name, *std::move(part));
  }
  for (const auto& [name, part] : found) {
    // Some writers count from the decoder's last layer on.
    const int64_t layer = part.layer < layers ? layers + part.layer : part.layer;
    const std::string common = fmt::format("model.layers.{}.{}", layer, part.name);
    if (!drafting.contains(part.layer) || tensors.contains(common)) continue;
    auto node = tensors.extract(name);
    node.key() = common;
    tensors.insert(std::move(node));
  }
}

void StripTextModelPrefix(StoredTensors& tensors) {
  for (const TextPrefix& prefix : kTextPrefixes) {
    if (!tensors.contains(fmt::format("{}embed_tokens.weight", prefix.layers))) continue;
    StoredTensors kept;
    for (auto& [name, tensor] : tensors) {
      if (name.starts_with(prefix.layers))
        kept.emplace("model." + name.substr(prefix.layers.size()), std::move(tensor));
      else if (name.starts_with(prefix.head))
        kept.emplace("lm_head." + name.substr(prefix.head.size()), std::move(tensor));
      else if (name.starts_with(prefix.drafts))
        kept.emplace("mtp." + name.substr(prefix.drafts.size()), std::move(tensor));
    }
    tensors = std::move(kept);
    return;
  }
}

}  // namespace

void UseNamesOfDeepseek(int64_t layers, StoredTensors& tensors) {
  StripTextModelPrefix(tensors);
  NumberDraftingLayers(layers, tensors);
}

}  // namespace latte
