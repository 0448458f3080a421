#include "src/text/added_tokens.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "src/text/unicode/regex_onig_syntax.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

// \w as Unicode Technical Standard 18 and Rust's regular expressions define it: letters, marks,
// decimal digits, connectors and joiners.
constexpr std::string_view kWordCharacter =
    R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}])";

// The offset where the code point that ends at `end` begins.
size_t Before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

// Not before `limit`.
size_t WhiteSpaceBegin(std::string_view text, size_t limit, size_t end) {
  while (end > limit) {
    const size_t begin = Before(text, end);
    if (!IsWhiteSpace(DecodeUtf8(text.substr(begin)).code_point)) break;
    end = begin;
  }
  return end;
}

// Finds the ends of white space. A token of white space can begin at every place of a long run, so
// the end of the last run is kept.
class WhiteSpaceEnds {
 public:
  explicit WhiteSpaceEnds(std::string_view text) : text_(text) {}

  size_t From(size_t begin) {
    if (begin >= begin_ && begin <= end_) return end_;
    begin_ = end_ = begin;
    while (end_ < text_.size()) {
      const Utf8Step step = DecodeUtf8(text_.substr(end_));
      if (!IsWhiteSpace(step.code_point)) break;
      end_ += static_cast<size_t>(step.bytes);
    }
    return end_;
  }

 private:
  std::string_view text_;
  size_t begin_ = 1;  // no run yet
  size_t end_ = 0;
};

}  // namespace

Result<AddedTokens> AddedTokens::Create(std::vector<AddedToken> tokens) {
  AddedTokens out;
  std::sort(tokens.begin(), tokens.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (AddedToken& token : tokens) {
    if (token.single_word && out.word_.empty()) {
      LATTE_ASSIGN_OR_RETURN(const std::string pattern, TranslatePattern(kWordCharacter));
      LATTE_ASSIGN_OR_RETURN(Regex word, Regex::Compile(pattern));
      out.word_.push_back(std::move(word));
    }
    Round& round = out.rounds_[token.normalized ? 1 : 0];
    round.starts[static_cast<uint8_t>(token.content.front())] = true;
    round.tokens.push_back(std::move(token));
  }
  return out;
}

const AddedToken* AddedTokens::LongestAt(const Round& round, std::string_view text) const {
  if (!round.starts[static_cast<uint8_t>(text.front())]) return nullptr;
  const AddedToken* longest = nullptr;
  auto low = round.tokens.begin();
  auto high = round.tokens.end();
  // Narrows, byte by byte, the range of tokens that share a prefix with the text. The shortest of
  // them comes first in the range.
  for (size_t depth = 0; depth < text.size() && low != high; ++depth) {
    const auto byte_at = [depth](const AddedToken& token) {
      return token.content.size() > depth ? static_cast<uint8_t>(token.content[depth]) : -1;
    };
    const int byte = static_cast<uint8_t>(text[depth]);
    // Long tokens that begin alike differ late: then the first and the last one agree.
    if (byte_at(*low) != byte || byte_at(*std::prev(high)) != byte) {
      low = std::partition_point(low, high, [&](const AddedToken& t) { return byte_at(t) < byte; });
      high =
          std::partition_point(low, high, [&](const AddedToken& t) { return byte_at(t) == byte; });
    }
    if (low != high && low->content.size() == depth + 1) longest = &*low;
  }
  return longest;
}

Result<bool> AddedTokens::StandsAlone(std::string_view text, size_t begin, size_t end,
                                      RegexMatcher* word) {
  for (const size_t neighbour : {begin > 0 ? Before(text, begin) : text.size(), end}) {
    if (neighbour == text.size()) continue;
    const Utf8Step step = DecodeUtf8(text.substr(neighbour));
    LATTE_ASSIGN_OR_RETURN(const RegexMatch match,
                           word->Find(text.substr(neighbour, static_cast<size_t>(step.bytes)), 0));
    if (match.found) return false;
  }
  return true;
}

Status AddedTokens::SplitRound(const Round& round, Search* search, std::string_view text,
                               size_t offset, std::vector<Piece>* out) const {
  size_t done = 0;  // `out` holds everything before this offset
  WhiteSpaceEnds ends(text);
  for (size_t at = 0; at < text.size();) {
    while (!search->ranges.empty() && search->ranges.front().end <= offset + at)
      search->ranges = search->ranges.subspan(1);
    if (search->ranges.empty()) break;
    const Range& range = search->ranges.front();
    if (offset + at < range.begin) {
      at = range.begin - offset;
      continue;
    }
    const AddedToken* token = LongestAt(round, text.substr(at, range.end - offset - at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + token->content.size();
    at = end;
    if (!(token->special ? search->special : search->added)) continue;
    if (token->single_word) {
      if (!search->word) search->word.emplace(word_.front());
      LATTE_ASSIGN_OR_RETURN(const bool alone, StandsAlone(text, begin, end, &*search->word));
      if (!alone) continue;
    }
    if (token->lstrip) begin = std::max(WhiteSpaceBegin(text, done, begin), done);
    if (token->rstrip) end = ends.From(end);
    if (begin >= end) continue;  // the token before took all of it
    if (done < begin) out->push_back({text.substr(done, begin - done), std::nullopt});
    out->push_back({text.substr(begin, end - begin), token->id});
    done = end;
  }
  if (done < text.size()) out->push_back({text.substr(done), std::nullopt});
  return {};
}

Result<std::vector<AddedTokens::Piece>> AddedTokens::SplitAll(std::string_view text,
                                                              const Search& search) const {
  std::vector<Piece> pieces;
  if (text.empty()) return pieces;
  pieces.push_back({text, std::nullopt});
  if (!search.special && !search.added) return pieces;
  for (const Round& round : rounds_) {
    if (round.tokens.empty()) continue;
    Search rest = {
        search.special, search.added, search.ranges, {}};  // pieces and ranges are in order
    std::vector<Piece> finer;
    for (const Piece& piece : pieces) {
      if (piece.id) {
        finer.push_back(piece);
      } else {
        const auto offset = static_cast<size_t>(piece.text.data() - text.data());
        LATTE_RETURN_IF_ERROR(SplitRound(round, &rest, piece.text, offset, &finer));
      }
    }
    pieces = std::move(finer);
  }
  return pieces;
}

Result<std::vector<AddedTokens::Piece>> AddedTokens::Split(std::string_view text,
                                                           bool parse_special,
                                                           bool parse_added) const {
  const Range whole{0, text.size()};
  return SplitAll(text, {parse_special, parse_added, {&whole, 1}, {}});
}

Result<std::vector<AddedTokens::Piece>> AddedTokens::Split(std::string_view text,
                                                           std::span<const Range> ranges) const {
  return SplitAll(text, {true, true, ranges, {}});
}

}  // namespace latte
