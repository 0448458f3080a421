// Splits text into the pieces that byte pair encoding works on: the `pre_tokenizer` of
// tokenizer.json. Each step splits every piece of the previous step, and its lookarounds see only
// that piece. Text must be valid UTF-8. Bytes stay bytes: the byte-level alphabet of the file
// format is decoded when the vocabulary is loaded.
#pragma once

#include <cstddef>
#include <functional>
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
    std::vector<RegexMatcher> matchers;  // one per step that has a pattern
    std::vector<std::string> spaced;     // one per step: the piece that kPrefixSpace has made
  };

  // Errors: kUnsupported naming the step and the unsupported part of its pattern.
  [[nodiscard]] static Result<PreTokenizer> Create(const std::vector<PreTokenizeStep>& steps,
                                                   bool jit = true);

  using TakePiece = std::function<Status(std::string_view piece)>;
  // Calls `take` for each piece of `text`, in order; none is empty. A piece stays valid until the
  // next one. The pieces are not collected: a list of them can take 16 times the bytes of a text.
  // Requires: `text` is valid UTF-8.
  // Errors: kInvalidArgument if a pattern exceeds its limits; of `take`, which ends the splitting.
  [[nodiscard]] Status Split(std::string_view text, Scratch* scratch, const TakePiece& take) const;

 private:
  struct Step {
    PreTokenizeStep::Kind kind;
    SplitBehavior behavior;
    bool invert;
    std::vector<Regex> regex;  // one element; none for kPrefixSpace
    size_t matcher = 0;        // of Scratch
  };
  class Joiner;

  Status SplitFrom(size_t step, std::string_view piece, Scratch* scratch,
                   const TakePiece& take) const;

  std::vector<Step> steps_;
};

// The pattern of GPT-2, which ByteLevel applies when `use_regex` is set.
extern const std::string_view kGpt2Pattern;

}  // namespace latte
