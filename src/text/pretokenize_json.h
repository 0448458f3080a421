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

// The parts of the file around its model.
struct TokenizerPipeline {
  std::vector<PreTokenizeStep> steps;
  std::optional<std::string> template_bos;  // the token that the post-processor puts first
  // SentencePiece's kind: tokens are spelled in characters, with "▁" for a space, and bytes as
  // <0x0A>. The first step is a kMetaspace, which does not cut.
  bool sentencepiece = false;
  bool normalizes = false;    // a normalizer writes "▁", so it changes added tokens, too
  bool strips_space = false;  // the decoder takes one space off the beginning
};

// Errors: kUnsupported naming a type that Latte does not support; kCorrupt for wrong JSON types.
[[nodiscard]] Result<TokenizerPipeline> ReadPipeline(const Json& root);

// Appends the steps of one member of the pre-tokenizer: Split, Digits or ByteLevel.
// Errors: as above.
[[nodiscard]] Status ReadPreTokenizeStep(const Json& member, std::vector<PreTokenizeStep>* steps);

}  // namespace latte
