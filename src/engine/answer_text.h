// Tokens of an answer → the text that is certain, up to a stop string.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/io/tokenizer.h"

namespace latte {

// Follows one stop string through a text. Knuth, Morris and Pratt's search: constant cost per byte,
// spread over the text.
class StopString {
 public:
  explicit StopString(std::string text);  // not empty

  bool Advance(char byte);                     // whether an occurrence ends with this byte
  size_t pending() const { return matched_; }  // bytes at the text's end that may begin one
  size_t size() const { return text_.size(); }

 private:
  std::string text_;
  std::vector<size_t> borders_;  // of each prefix: how long a shorter prefix it also ends with
  size_t matched_ = 0;
};

// The text of one answer. A stop string ends it and is left out with everything after it; of
// several the one that ends first counts, and of those the one that begins first. Where the tokens
// are split does not matter. Thread-compatible.
class AnswerText {
 public:
  // Requires: stop strings that are not empty and valid UTF-8 (StopConditions::Validate).
  AnswerText(Tokenizer tokenizer, const std::vector<std::string>& stop_strings,
             bool skip_special = false);

  struct Step {
    std::string text;  // whole code points that became certain; often none
    bool stopped = false;
  };
  // Without `may_stop`, stop strings that end in this token's text are text like any other.
  // Cost: linear in the token's text. Requires: not stopped yet.
  Step Push(int32_t token, bool may_stop = true);

  // The end of an answer that no stop string ended: what was held back, as it might have become
  // one, and U+FFFD for a code point that was left unfinished.
  std::string Flush();

 private:
  std::optional<size_t> LongestEnding(char byte);

  StreamDecoder decoder_;
  std::vector<StopString> stops_;
  std::string held_;  // shorter than the longest stop string
};

}  // namespace latte
