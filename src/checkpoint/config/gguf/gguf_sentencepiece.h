// Tokenizers of SentencePiece's kind in GGUF files: tokenizer.ggml.model is "llama". The tokens
// have scores instead of merges.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/checkpoint/config/gguf/gguf_vocabulary.h"

namespace latte {

// Whether `token` spells a byte: <0x0A>.
bool IsByteOfSentencePiece(std::string_view token);

// The merges that transformers derives from the scores: every way to make a normal token of two
// others, the token with the highest score first.
// Errors: kCorrupt if scores are missing, if there are more than `most`, or if the tokens are so
// long that finding them takes too much time.
[[nodiscard]] Result<std::vector<GgufMerge>> MergesOfScores(const GgufMetadata& metadata,
                                                            const GgufVocabulary& vocabulary,
                                                            size_t most);

// What tokenizer.json says besides its model: spaces are "▁", and one stands before each text if
// the file does not say otherwise.
// Errors: kUnsupported for a way to change texts that is not read.
[[nodiscard]] Result<std::string> SentencePiecePipeline(const GgufMetadata& metadata);

}  // namespace latte
