// Which architectures there are, which of them Latte runs, and why it refuses the others.
// A new family is a row of the table in model_family.cc.
#pragma once

#include <string_view>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/checkpoint/config/model_config.h"

namespace latte {

// What a family's configuration class fills in where config.json is silent; 0 (or empty) where it
// fills in nothing and the key is required.
struct ClassDefaults {
  MlaDims mla;
  MoeDims moe;
  IndexerDims indexer;  // heads > 0: the family has one
  double norm_eps = 1e-6;
  bool tied_embeddings = false;
};

struct ModelFamily {
  std::string_view model_type;    // "deepseek_v3"; empty where only the other name is known
  std::string_view architecture;  // "DeepseekV3ForCausalLM"; likewise
  const ClassDefaults* defaults;  // null where refused, or where it wraps another family
  std::string_view refused;       // why; empty where supported

  // A model of several parts, whose text part is a family of its own under text_config.
  bool wraps() const { return defaults == nullptr && refused.empty(); }
};

// The family that `model_type` and `architectures` name. A checkpoint that uses either name of a
// refused family is refused.
// Errors: kUnsupported with the reason, or with the list of what is supported.
[[nodiscard]] Result<const ModelFamily*> FindModelFamily(const Json& config);

}  // namespace latte
