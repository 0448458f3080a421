// Reads the parts of tokenizer.json around the model: normalizer, pre_tokenizer, post_processor,
// decoder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "latte/status.h"

#include "src/base/json.h"
#include "src/text/pretokenize.h"

namespace latte {

// Reads the steps of the pre-tokenizer and the token that the post-processor puts first, if any.
// Errors: kUnsupported naming a type that Latte does not support; kCorrupt for wrong JSON types.
[[nodiscard]] Status ReadPipeline(const Json& root, std::vector<PreTokenizeStep>* steps,
                                  std::optional<std::string>* template_bos);

// Appends the steps of one member of the pre-tokenizer: Split, Digits or ByteLevel.
// Errors: as above.
[[nodiscard]] Status ReadPreTokenizeStep(const Json& member, std::vector<PreTokenizeStep>* steps);

}  // namespace latte
