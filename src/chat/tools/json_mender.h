// Repairs the JSON of a model while it is generated. Valid JSON passes byte for byte.
//
// It repairs NaN and infinities (null), True, False and None, words and names without quotes, texts
// in single quotes, control characters and unknown escapes in texts, lone surrogates (U+FFFD),
// extra and missing commas, unbalanced brackets, and text after the value. If an object has a name
// twice, the first value counts, because a stream has already sent it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace latte {

// `text` as JSON that readers without extensions take: what it says for a number, true, false, null
// and the words for them that Python and JavaScript have; empty for all other text.
std::string_view JsonOfWord(std::string_view text);

// The quoted JSON text that stands for `text`, without the quotes.
std::string EscapedJson(std::string_view text);

// Thread-compatible. Memory: names of open objects, and texts that may yet change.
class JsonMender {
 public:
  // Appends what became certain. Where the text is cut does not matter.
  void Push(std::string_view text, std::string* out);

  // The text ends, and with it the value: appends what it lacks. All output together is then one
  // JSON value, or white space where there was nothing else. Requires: valid UTF-8.
  void Finish(std::string* out);

  // The text is cut: appends what was held back. The output is no JSON unless whole().
  void Cut(std::string* out);

  // The value has ended, but for white space.
  bool whole() const { return state_ == State::kDone || state_ == State::kOver; }

 private:
  enum class State : uint8_t {
    kValue,   // before a value
    kKey,     // before a name, or the end of the object
    kColon,   // after a name
    kString,  // inside quotes
    kWord,    // inside a value, or a name, without quotes
    kAfter,   // after a value
    kDone,    // after the whole value
    kOver,    // after what follows it and is no white space
  };

  void Step(char c);
  void StepValue(char c);
  void StepKey(char c);
  void StepColon(char c);
  void StepAfter(char c);
  void StepString(char c);
  void StepEscape(char c);
  void StepWord(char c);

  void Put(std::string_view text);
  void PutHeld();  // the comma before what begins now
  void PutNull();
  void Begin(char opener);
  void Close(char closer);  // brackets up to this one, if it is open
  void CloseInnermost();
  void EndValue();
  void EndKey();
  void EndString();
  void EndWord();
  void EndEscape(char16_t unit);
  void DropSurrogate();  // that nothing completes
  bool in_object() const { return closers_.ends_with('}'); }

  State state_ = State::kValue;
  std::string closers_;                       // of the open brackets
  std::vector<std::set<std::string>> names_;  // of each open object
  std::string* out_ = nullptr;                // during a call
  std::string held_;                          // a comma and white space that may be too many
  std::string key_;                           // with its quotes, while it may stand twice
  std::string word_;
  bool word_is_text_ = false;  // it has white space inside
  std::string escape_;         // of a text, from its backslash
  std::string surrogate_;      // the escape of a first half
  char quote_ = '"';
  bool is_key_ = false;  // of kString and kWord
  size_t muted_ = 0;     // open brackets where a name stood twice, until its value ends; 0: none
};

}  // namespace latte
