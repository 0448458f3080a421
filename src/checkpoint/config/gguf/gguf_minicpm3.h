// Peculiarities of MiniCPM3's GGUF files: the factors of LongRoPE are tensors, and constants of the
// model are missing.
#pragma once

#include <string>
#include <vector>

#include "latte/status.h"

#include "src/base/json_out.h"
#include "src/checkpoint/config/gguf/gguf_config.h"
#include "src/checkpoint/config/gguf/gguf_keys.h"

namespace latte {

// Adds the rotation to a config.json. The scales of hidden states stay out of it: their defaults
// are the scales of MiniCPM3-4B, and `assumed` gets a sentence if the model has another size.
// Errors: kCorrupt naming the tensor or key; kUnsupported for another scaling.
[[nodiscard]] Status ReadMiniCpm3(const GgufKeys& in, const StoredTensors& tensors,
                                  const GgufTensorBytes& bytes, JsonOut& json,
                                  std::vector<std::string>& assumed);

// Adds <|im_end|>, which ends a turn, to eos_token_id: files name </s> only.
// Errors: kCorrupt if tokenizer.ggml.tokens is no array of strings.
[[nodiscard]] Status AddEndOfTurn(const GgufMetadata& metadata, JsonOut& json);

}  // namespace latte
