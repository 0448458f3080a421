// Converts tokens of an answer to its final text, up to a stop string. Special tokens are not text
// unless the caller wants to see them. <think> and </think> are always text, because they separate
// the reasoning from the answer.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/output/content_finder.h"
#include "src/text/tokenizer.h"

namespace latte {

// Follows one stop string through a text. Knuth, Morris and Pratt's search: constant cost per byte,
// spread over the text.
class StopString {
 public:
  explicit StopString(std::string text);  // not empty

  bool Advance(char byte);                     // whether an occurrence ends with this byte
  void Reset() { matched_ = 0; }               // no occurrence spans this place
  size_t pending() const { return matched_; }  // bytes at the text's end that may begin one
  size_t size() const { return text_.size(); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<size_t> borders_;  // of each prefix: how long a shorter prefix it also ends with
  size_t matched_ = 0;
};

// Whether a token is part of an answer's text where special tokens are not kept.
bool IsShown(const Tokenizer& tokenizer, int32_t token);

// The text of one answer. A stop string ends it and is left out with everything after it; of
// several the one that ends first counts, and of those the one that begins first. Where the tokens
// are split does not matter. Stop strings are looked for both in the text that is shown and in the
// text with all special tokens, so that "<|im_end|>" stops whether it is shown or not. In a chat,
// stop strings count in the content only: not in reasoning, not in calls of functions, and not
// across them. Thread-compatible.
class AnswerText {
 public:
  // Requires: stop strings that are not empty and valid UTF-8 (StopConditions::Validate).
  // chat: finds the content of an answer; none: all of it is content.
  AnswerText(Tokenizer tokenizer, const std::vector<std::string>& stop_strings, bool keep_special,
             std::optional<ContentFinder> chat = std::nullopt);

  struct Step {
    std::string text;  // whole code points that became certain; often none
    bool stopped = false;
    std::string stop_string = {};  // that stopped it
  };
  // Without `may_stop`, stop strings that end in this token's text are text like any other.
  // Cost: linear in the token's text. Requires: not stopped yet.
  Step Push(int32_t token, bool may_stop = true);

  // The end of an answer that no stop string ended: what was held back, as it might have become
  // one, and U+FFFD for a code point that was left unfinished. A stop string may stand in text that
  // becomes content only now.
  Step Flush();

 private:
  struct Occurrence {
    const StopString* stop = nullptr;
    size_t shown = 0;  // bytes of it that are shown
  };
  struct Byte {
    char value = 0;
    bool hidden = false;
    bool may_stop = true;
  };

  // Takes bytes whose kind is certain. Returns whether a stop string ends with one.
  bool Take(const Byte& byte, bool content, Step* out);
  bool TakeRuns(const std::vector<ContentFinder::Run>& runs, Step* out);
  bool Add(const Byte& byte, Step* out);
  void HoldBack(Step* out);
  void ResetStops();
  // The occurrence of a stop string that ends with this byte.
  std::optional<Occurrence> FindStop(char byte, bool hidden);
  size_t ShownOf(size_t last_bytes) const;
  size_t Pending() const;  // shown bytes that may yet be part of a stop string

  Tokenizer tokenizer_;
  bool keep_special_;
  StreamDecoder decoder_;
  std::vector<StopString> stops_;      // followed through what is shown
  std::vector<StopString> all_stops_;  // and through everything; none where nothing is hidden
  size_t longest_stop_ = 0;
  std::optional<ContentFinder> chat_;  // only with stop strings
  std::deque<Byte> undecided_;         // whose kind chat_ does not know yet
  std::string recent_;                 // of the last bytes of content: kShown or kHidden
  std::string held_;                   // shorter than the longest stop string
};

}  // namespace latte
