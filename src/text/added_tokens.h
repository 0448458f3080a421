// Finds the added tokens of tokenizer.json in a text, before any other step reads the text. The
// longest token at the leftmost place wins. A token that takes white space gives its id again for
// every place in it where a token begins, as the `tokenizers` package does. Tokens that match raw
// text are searched before tokens that match normalised text; both texts are the same, because
// normalizers are refused.
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

// One entry of `added_tokens`, with the file's names.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // matches only where no word character touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // searched in the second round
  bool special = false;
};

// Immutable, thread-safe.
class AddedTokens {
 public:
  // A piece of the text: plain text, or one token with the white space that it took.
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

  // The pieces of `text`. A token of a kind that is not parsed stays plain text, and a shorter
  // token inside it is not searched.
  // Requires: `text` is valid UTF-8.
  [[nodiscard]] Result<std::vector<Piece>> Split(std::string_view text, bool parse_special,
                                                 bool parse_added) const;

  // Parses every kind of token, but only where the whole token lies inside one of `ranges`. A
  // longer token that crosses the border of a range does not hide a shorter one inside. The
  // neighbours of a token (white space to take, word characters) count wherever they are.
  // Requires: `text` is valid UTF-8; the ranges are in order, not empty, and do not touch.
  [[nodiscard]] Result<std::vector<Piece>> Split(std::string_view text,
                                                 std::span<const Range> ranges) const;

 private:
  // The tokens of one round, by content.
  struct Round {
    std::vector<AddedToken> tokens;
    bool starts[256] = {};  // the bytes that begin a token
  };

  // The kinds of tokens to find, and the ranges of the whole text to search that are left.
  struct Search {
    bool special = true;
    bool added = true;
    std::span<const Range> ranges;
    std::optional<RegexMatcher> word;  // made for the first token with single_word
  };

  const AddedToken* LongestAt(const Round& round, std::string_view text) const;
  Result<std::vector<Piece>> SplitAll(std::string_view text, const Search& search) const;
  // `text` begins at byte `offset` of the whole text.
  Status SplitRound(const Round& round, Search* search, std::string_view text, size_t offset,
                    std::vector<Piece>* out) const;
  static Result<bool> StandsAlone(std::string_view text, size_t begin, size_t end,
                                  RegexMatcher* word);

  Round rounds_[2];
  std::vector<Regex> word_;  // matches one word character; present only if a token uses single_word
};

}  // namespace latte
