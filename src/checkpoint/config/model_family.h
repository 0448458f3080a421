// The known architectures: which of them Latte runs, and why it refuses the others. A new family is
// one entry of the table in model_family.cc.
#pragma once

#include <string_view>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/checkpoint/config/model_config.h"

namespace latte {

// Values that a family's configuration class fills in for keys that config.json omits; 0 (or empty)
// if the key is required.
struct ClassDefaults {
  MlaDims mla;
  MoeDims moe;
  IndexerDims indexer;  // heads > 0: the family has an indexer
  double norm_eps = 1e-6;
  bool tied_embeddings = false;
  bool query_temperature = false;  // the rope keys follow Mistral's rules
  bool rope_interleaved = true;
  bool long_rope = false;  // rope_type longrope is allowed
  // The constants of MiniCPM's class, which scale hidden states; embedding 0: the family has none.
  struct {
    double embedding = 0;
    double depth = 0;
    int64_t base_width = 0;
  } scales;
};

struct ModelFamily {
  std::string_view model_type;    // "deepseek_v3"; empty if only the architecture is known
  std::string_view architecture;  // "DeepseekV3ForCausalLM"; empty if only the model type is known
  const ClassDefaults* defaults;  // null if refused, or if it wraps another family
  std::string_view refused;       // the reason; empty if supported

  // A multi-part model, whose text part is another family under text_config.
  bool wraps() const { return defaults == nullptr && refused.empty(); }
};

// The family that `model_type` and `architectures` name. A checkpoint that uses either name of a
// refused family is refused.
// Errors: kUnsupported with the reason, or with the list of supported families.
[[nodiscard]] Result<const ModelFamily*> FindModelFamily(const Json& config);

}  // namespace latte
