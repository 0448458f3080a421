// Splits text into the pieces that byte pair encoding works on: the `pre_tokenizer` of
// tokenizer.json. Each step splits every piece that the step before left, and its lookarounds see
// that piece only. Text must be valid UTF-8; bytes stay bytes (the byte-level alphabet of the file
// format is undone when the vocabulary is loaded).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/text/unicode/regex.h"

namespace latte {

// What becomes of the parts of a piece that match and those that do not, in Hugging Face's names.
enum class SplitBehavior {
  kIsolated,            // every part is a piece
  kRemoved,             // matches disappear
  kMergedWithPrevious,  // a match is the end of the piece before it
  kMergedWithNext,      // a match is the beginning of the piece after it
  kContiguous,          // neighbouring matches are one piece
};

// One step as the file gives it.
struct PreTokenizeStep {
  enum class Kind {
    kRegex,        // `pattern` in Oniguruma's syntax
    kLiteral,      // `pattern` is text
    kPrefixSpace,  // puts a space before each piece that has none; no pattern
  };
  Kind kind = Kind::kRegex;
  std::string pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // what does not match counts as the match
};

// Immutable, thread-safe.
class PreTokenizer {
 public:
  // Buffers of one thread for one PreTokenizer, used again from call to call. Thread-compatible.
  class Scratch {
   public:
    explicit Scratch(const PreTokenizer& pre_tokenizer);

   private:
    friend class PreTokenizer;
    struct Part {
      std::string_view text;
      bool match;
    };
    std::vector<RegexMatcher> matchers;  // one per step that has a pattern
    std::vector<std::string_view> pieces;
    std::vector<std::string_view> next_pieces;
    std::vector<Part> parts;
    std::vector<std::string> spaced;  // text that a kPrefixSpace step made
  };

  // Errors: kUnsupported naming the step and what in its pattern cannot be had.
  [[nodiscard]] static Result<PreTokenizer> Create(const std::vector<PreTokenizeStep>& steps,
                                                   bool jit = true);

  // The pieces of `text`, in order, none of them empty. They point into `text` or into `scratch`
  // and stay valid until the next call with it.
  // Requires: `text` is valid UTF-8.  Errors: kInvalidArgument when a pattern hits its limits.
  [[nodiscard]] Result<const std::vector<std::string_view>*> Split(std::string_view text,
                                                                   Scratch* scratch) const;

 private:
  struct Step {
    PreTokenizeStep::Kind kind;
    SplitBehavior behavior;
    bool invert;
    std::vector<Regex> regex;  // one, or none for kPrefixSpace
  };

  static Status FindParts(std::string_view piece, bool invert, RegexMatcher* matcher,
                          std::vector<Scratch::Part>* parts);
  static void Join(SplitBehavior behavior, std::vector<Scratch::Part>* parts,
                   std::vector<std::string_view>* pieces);
  static void PrefixSpaces(Scratch* scratch);

  std::vector<Step> steps_;
};

// The pattern of GPT-2, which ByteLevel applies when `use_regex` is set.
extern const std::string_view kGpt2Pattern;

}  // namespace latte
