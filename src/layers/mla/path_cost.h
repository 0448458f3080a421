// Chooses the form of attention for a prompt, absorbed or expanded: pure arithmetic over
// lengths and the machine's rates (docs/math/mla.md §10). Generated tokens are always absorbed.
// Tokens that choose their keys (§12) are sparse on any path; here they only have a price.
#pragma once

#include "src/checkpoint/config/model_config.h"
#include "src/layers/mla/calibration.h"
#include "src/layers/step_context.h"

namespace latte {

// A prompt at admission.
struct PromptShape {
  int64_t new_tokens = 0;     // > 0
  int64_t cached_tokens = 0;  // before them
};

// The cost of one layer's attention, without the projections that all paths share.
struct PathCost {
  double flops = 0;
  double bytes = 0;  // weights and cached rows, read once per chunk
  double seconds = 0;
};

struct PathChoice {
  MlaPath path = MlaPath::kLatent;  // of the dense tokens; absorbed if there are none
  int64_t dense_tokens = 0;         // attend to all keys before them
  int64_t sparse_tokens = 0;        // choose their keys; after the dense tokens
  // Of the dense tokens, by either path.
  PathCost absorbed;
  PathCost latent;
  // The sparse tokens: absorbed attention to the chosen keys, and the choice in a layer that owns
  // an indexer. The choice counts the queries and the scores; the products that every token needs,
  // for its index key, do not count.
  PathCost sparse;
  PathCost indexer;
};

// The costs of the paths, and the cheaper path of the dense tokens; absorbed on a tie. The chunks
// of the prompt count as 512 tokens whatever they are, so the choice does not depend on them.
// `indexer`: of the model, if its tokens choose keys; heads == 0: all tokens are dense.
// Requires: with an indexer, rates.indexer is not empty.
PathChoice ChoosePath(const MlaDims& dims, const PromptShape& prompt, const MlaRates& rates,
                      const IndexerDims& indexer = {});

}  // namespace latte
