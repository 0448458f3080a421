// A tokenizer of invented words for a model of random weights, so that its output reads as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace latte {

// The contents of tokenizer.json and tokenizer_config.json.
struct SynthTokenizer {
  std::string tokenizer;
  std::string config;  // with a chat template
};

// A byte-level BPE tokenizer with exactly `vocab` tokens: the 256 bytes, syllables, and words of
// two and of three syllables. `bos` and `eos` are the ids of these tokens; -1: none. Null if
// `vocab` has no room for the bytes and the special tokens, or more room than there are words: a
// million.
std::optional<SynthTokenizer> MakeSynthTokenizer(int64_t vocab, int64_t bos, int64_t eos);

}  // namespace latte
