// What config.json says layer by layer: which layers are MoE, which own an indexer.
#pragma once

#include <vector>

#include "latte/status.h"

#include "src/checkpoint/config/config_reader.h"

namespace latte {

// `mlp_layer_types`: "dense" or "sparse" for each of `layers`; empty when the key is absent.
// Errors: kCorrupt for another length or word.
[[nodiscard]] Result<std::vector<bool>> ParseMoeLayers(const ConfigReader& in, int64_t layers);

// Which of `layers` own an indexer, the others taking over the choice of the one before them:
// `indexer_types` ("full" or "shared" each), or `index_topk_pattern` ("FFSS…"), or every
// `index_topk_freq`-th layer from `index_skip_topk_offset` on. Empty: all do. Source: the
// configuration class of GLM-5.2. Errors: kCorrupt naming the key.
[[nodiscard]] Result<std::vector<bool>> ParseIndexedLayers(const ConfigReader& in, int64_t layers);

}  // namespace latte
