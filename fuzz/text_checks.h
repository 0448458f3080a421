// Checks for any tokenizer: ids are in range, decoding ends, and the text is restored.
#pragma once

#include <string>
#include <string_view>

#include "fuzz/fuzz_input.h"
#include "src/text/tokenizer.h"
#include "src/text/unicode/unicode.h"

namespace latte::fuzz {

// `lossless`: the tokenizer neither drops nor adds text, so decoding restores the text.
inline void CheckText(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options,
                      bool lossless) {
  const auto ids = tokenizer.Encode(text, options);
  if (!ids) return;  // a pattern exceeded its limits, or there is no BOS
  for (const int32_t id : *ids)
    Require(id >= 0 && id < tokenizer.vocab_size(), "ids are in the vocabulary");
  const Result<std::string> decoded = tokenizer.Decode(*ids);
  Require(decoded.has_value(), "ids of Encode decode");
  StreamDecoder stream(tokenizer);
  std::string streamed;
  for (const int32_t id : *ids) streamed += stream.Push(id);
  streamed += stream.Flush();
  Require(ValidUtf8Prefix(streamed) == streamed.size(), "streamed text is valid UTF-8");
  if (!lossless) return;
  std::string repaired;
  AppendValidUtf8(text, &repaired);
  Require(*decoded == repaired, "text comes back");
}

inline void CheckTokenizer(const Tokenizer& tokenizer, std::string_view text, bool lossless) {
  constexpr std::string_view kMixed = "Hello, wörld  123\n\n<|end|> 日本 🙂\t\xff";
  const EncodeOptions plain = {.parse_special = false, .parse_added = false};
  CheckText(tokenizer, kMixed, plain, lossless);
  CheckText(tokenizer, text, plain, lossless);
  CheckText(tokenizer, text, {.add_bos = true, .parse_special = true}, false);
  // One text in sixteen is made long: work that grows faster than the text then exceeds the time
  // limit.
  constexpr size_t kLong = 1 << 15;
  if (text.empty() || !OneIn(16, text)) return;
  std::string repeated;
  while (repeated.size() < kLong) repeated += text;
  CheckText(tokenizer, repeated, plain, lossless);
  CheckText(tokenizer, repeated, {.parse_special = true}, false);
}

}  // namespace latte::fuzz
