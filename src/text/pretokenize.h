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
    kMetaspace,    // writes "▁" for spaces, as SentencePiece does; uses no pattern
  };
  // Where kMetaspace puts one "▁" before its piece, and where it cuts after that.
  enum class Prefix { kNever, kAlways, kIfAbsent, kIfAbsentAtStart };
  enum class Cut { kNowhere, kBeforeRuns, kBeforeEach };
  Kind kind = Kind::kRegex;
  std::string pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // the parts that do not match count as matches
  Prefix prefix = Prefix::kNever;
  Cut cut = Cut::kNowhere;  // runs: of "▁"
};

// Immutable, thread-safe.
class PreTokenizer {
 public:
  // Buffers of one thread for one PreTokenizer, reused between calls. Thread-compatible.
  class Scratch {
   public:
    explicit Scratch(const PreTokenizer& pre_tokenizer);

    bool at_start = true;  // nothing stands before the text to split, not even a token

   private:
    friend class PreTokenizer;
    std::vector<RegexMatcher> matchers;  // one per step that has a pattern
    std::vector<std::string> spaced;     // one per step: the piece with other spaces
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
    PreTokenizeStep::Prefix prefix;
    PreTokenizeStep::Cut cut;
    std::vector<Regex> regex;  // one element; none without a pattern
    size_t matcher = 0;        // of Scratch
  };
  class Joiner;

  Status SplitFrom(size_t step, std::string_view piece, Scratch* scratch,
                   const TakePiece& take) const;
  Status SplitMetaspace(size_t step, std::string_view piece, Scratch* scratch,
                        const TakePiece& take) const;

  std::vector<Step> steps_;
};

// What SentencePiece writes for a space: U+2581.
inline constexpr std::string_view kMetaspace = "\xE2\x96\x81";

// The pattern of GPT-2, which ByteLevel applies when `use_regex` is set.
extern const std::string_view kGpt2Pattern;

}  // namespace latte
