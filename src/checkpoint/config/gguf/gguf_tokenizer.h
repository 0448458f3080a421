// The metadata of a GGUF model as the tokenizer's files that the same model has in a Hugging Face
// folder, so that one reader (tokenizer.h) checks both and the ids are the same.
//
// Two things are not in the metadata. Converters mark tokens such as <｜User｜> as control, which
// tokenizer.json calls not special: text spells them only where special tokens are parsed. And they
// drop lstrip, rstrip and single_word of added tokens, which no published model of these sets.
#pragma once

#include "latte/status.h"

#include "src/checkpoint/gguf/gguf_metadata.h"
#include "src/text/tokenizer.h"

namespace latte {

// The tokenizer and the chat template of a model with these metadata.
// Errors: kUnsupported naming a kind of tokenizer or a way to split text that is not read; kCorrupt
// naming the key that is missing or wrong; of Tokenizer::FromJson and FromTiktoken.
[[nodiscard]] Result<Tokenizer> ParseGgufTokenizer(const GgufMetadata& metadata);

}  // namespace latte
