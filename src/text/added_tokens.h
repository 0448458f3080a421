// Finds the added tokens of tokenizer.json in text, before anything else looks at it: the longest
// token at the leftmost place wins; tokens that match raw text go before those that match
// normalised text (which is the same text here, as normalizers are refused).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/text/unicode/regex.h"

namespace latte {

// One entry of `added_tokens`, in the file's names.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // swallows white space before it
  bool rstrip = false;       // swallows white space after it
  bool normalized = false;   // searched in the second round
  bool special = false;
};

// Immutable, thread-safe.
class AddedTokens {
 public:
  // A piece of the text: plain, or one token (with the white space that it swallowed).
  struct Piece {
    std::string_view text;
    std::optional<int32_t> id;
  };

  // Bytes [begin, end) of a text.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };

  // Requires: contents are neither empty nor equal.
  [[nodiscard]] static Result<AddedTokens> Create(std::vector<AddedToken> tokens);

  // The pieces of `text`. Tokens of a kind that is not parsed stay plain text, and so does a
  // shorter token inside one of them.
  // Requires: `text` is valid UTF-8.
  [[nodiscard]] Result<std::vector<Piece>> Split(std::string_view text, bool parse_special,
                                                 bool parse_added) const;

  // The same with every kind parsed, but only where a whole token lies inside one of `ranges`; a
  // longer token that reaches out of one does not hide a shorter one inside. What stands next to a
  // token (white space to swallow, word characters) counts wherever it lies.
  // Requires: `text` is valid UTF-8; ranges are in order, not empty, and do not touch.
  [[nodiscard]] Result<std::vector<Piece>> Split(std::string_view text,
                                                 std::span<const Range> ranges) const;

 private:
  // The tokens of one round, by content.
  struct Round {
    std::vector<AddedToken> tokens;
    bool starts[256] = {};  // which bytes begin one
  };

  // What is looked for, and where in the whole text.
  struct Search {
    bool special = true;
    bool added = true;
    std::span<const Range> ranges;
  };

  const AddedToken* LongestAt(const Round& round, std::string_view text) const;
  Result<std::vector<Piece>> SplitAll(std::string_view text, const Search& search) const;
  // `text` begins at byte `offset` of the whole text.
  Status SplitRound(const Round& round, const Search& search, std::string_view text, size_t offset,
                    std::vector<Piece>* out) const;
  Result<bool> StandsAlone(std::string_view text, size_t begin, size_t end) const;

  Round rounds_[2];
  std::vector<Regex> word_;  // one word character; there only if some token asks for single_word
};

}  // namespace latte
