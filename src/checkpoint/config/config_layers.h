// The keys of config.json that describe single layers, such as MoE layers and layers with an
// indexer.
#pragma once

#include <vector>

#include "latte/status.h"

#include "src/checkpoint/config/config_reader.h"

namespace latte {

// `mlp_layer_types`: "dense" or "sparse" for each of `layers`; empty if the key is absent.
// Errors: kCorrupt for another length or word.
[[nodiscard]] Result<std::vector<bool>> ParseMoeLayers(const ConfigReader& in, int64_t layers);

// The layers that have an indexer; the others use the choice of the previous layer. The keys are
// `indexer_types` ("full" or "shared" for each layer), `index_topk_pattern` ("FFSS…"), or every
// `index_topk_freq`-th layer from `index_skip_topk_offset` on. Empty: all layers have one. Source:
// the configuration class of GLM-5.2.
// Errors: kCorrupt naming the key.
[[nodiscard]] Result<std::vector<bool>> ParseIndexedLayers(const ConfigReader& in, int64_t layers);

}  // namespace latte
