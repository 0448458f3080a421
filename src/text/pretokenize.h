// Splits text into the pieces that byte pair encoding works on: the `pre_tokenizer` of
// tokenizer.json. Each step splits every piece of the previous step, and its lookarounds see only
// that piece. Text must be valid UTF-8. Bytes stay bytes: the byte-level alphabet of the file
// format is decoded when the vocabulary is loaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/text/unicode/regex.h"

namespace latte {

// The pieces that the matching and the other parts of a piece become; Hugging Face's names.
enum class SplitBehavior {
  kIsolated,            // every part becomes a piece
  kRemoved,             // matches disappear
  kMergedWithPrevious,  // a match ends the piece before it
  kMergedWithNext,      // a match begins the piece after it
  kContiguous,          // neighbouring matches become one piece
};

// One step, as the file describes it.
struct PreTokenizeStep {
  enum class Kind {
    kRegex,        // `pattern` in Oniguruma's syntax
    kLiteral,      // `pattern` is literal text
    kPrefixSpace,  // adds a space before each piece that has none; uses no pattern
  };
  Kind kind = Kind::kRegex;
  std::string pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // the parts that do not match count as matches
};

// Immutable, thread-safe.
class PreTokenizer {
 public:
  // Buffers of one thread for one PreTokenizer, reused between calls. Thread-compatible.
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
    std::vector<std::string> spaced;  // text made by a kPrefixSpace step
  };

  // Errors: kUnsupported naming the step and the unsupported part of its pattern.
  [[nodiscard]] static Result<PreTokenizer> Create(const std::vector<PreTokenizeStep>& steps,
                                                   bool jit = true);

  // The pieces of `text`, in order; none is empty. They point into `text` or into `scratch` and
  // stay valid until the next call with that scratch.
  // Requires: `text` is valid UTF-8.
  // Errors: kInvalidArgument if a pattern exceeds its limits.
  [[nodiscard]] Result<const std::vector<std::string_view>*> Split(std::string_view text,
                                                                   Scratch* scratch) const;

 private:
  struct Step {
    PreTokenizeStep::Kind kind;
    SplitBehavior behavior;
    bool invert;
    std::vector<Regex> regex;  // one element; none for kPrefixSpace
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
