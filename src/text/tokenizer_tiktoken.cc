#include "src/text/tokenizer_tiktoken.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "src/base/json.h"
#include "src/base/strings.h"
#include "src/text/unicode/printable.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr int64_t kReservedIds = 256;
// Six times the number of ranks of Kimi-K2. Together with the next two limits it makes a hostile
// file quick to refuse.
constexpr int64_t kMaxRanks = int64_t{1} << 20;
constexpr size_t kMaxBase64Chars = 1368;  // a token of 1,024 bytes
constexpr size_t kMaxPrefixPairs = size_t{1} << 22;

constexpr size_t kMaxChunkChars = 400'000;
constexpr size_t kMaxRunChars = 25'000;

constexpr std::string_view kPattern =
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

using Ranks = std::unordered_map<std::string_view, int32_t>;

std::optional<int64_t> ParseNumber(std::string_view text) {
  uint32_t value = 0;  // from_chars accepts no sign here
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Strict: whole groups of four, padding only at the end, no spare bits.
std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const int value = Base64Value(c);
    if (value < 0) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xFFFF;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<char>(bits >> held & 0xFF));
  }
  if ((bits & ((1u << held) - 1)) != 0) return std::nullopt;
  return out;
}

tl::unexpected<Error> BadLine(int64_t line, std::string_view what) {
  return Corrupt(fmt::format("tiktoken.model: line {}: {}", line, what));
}

struct Entry {
  std::string token;
  int64_t rank = 0;
};

Result<Entry> ParseLine(std::string_view text, int64_t line, int64_t rank_end) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos)
    return BadLine(line, fmt::format("expected 'BASE64 RANK', found '{}'", Printable(text, 60)));
  const std::string_view base64 = text.substr(0, space);
  if (base64.size() > kMaxBase64Chars)
    return BadLine(line, fmt::format("expected a token of at most {} base64 characters, found {}",
                                     kMaxBase64Chars, base64.size()));
  std::optional<std::string> token = DecodeBase64(base64);
  if (!token || token->empty())
    return BadLine(line,
                   fmt::format("expected a token in base64, found '{}'", Printable(base64, 60)));
  const std::string_view number = text.substr(space + 1);
  const std::optional<int64_t> rank = ParseNumber(number);
  if (!rank || *rank >= rank_end)
    return BadLine(line, fmt::format("expected a rank from 0 to {}, found '{}'", rank_end - 1,
                                     Printable(number, 60)));
  return Entry{*std::move(token), *rank};
}

// Stores the tokens by rank in `tokens` and returns their ranks by text; the keys point into
// `tokens`.
Result<Ranks> ReadRanks(std::string_view model, std::vector<std::string>* tokens) {
  const int64_t lines = std::count(model.begin(), model.end(), '\n') + 1;
  const int64_t rank_end = std::min(lines, kMaxRanks);
  tokens->resize(static_cast<size_t>(rank_end));
  std::vector<int64_t> line_of(tokens->size(), 0);
  Ranks ranks;
  ranks.reserve(tokens->size());
  int64_t line = 0;
  for (std::string_view rest = model; !rest.empty();) {
    std::string_view text = TakePiece(&rest, '\n');
    ++line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty()) continue;
    LATTE_ASSIGN_OR_RETURN(Entry entry, ParseLine(text, line, rank_end));
    const size_t at = static_cast<size_t>(entry.rank);
    if (line_of[at] != 0)
      return BadLine(line,
                     fmt::format("rank {} stands already in line {}", entry.rank, line_of[at]));
    (*tokens)[at] = std::move(entry.token);
    line_of[at] = line;
    const auto [known, added] = ranks.emplace((*tokens)[at], static_cast<int32_t>(at));
    if (!added)
      return BadLine(line, fmt::format("the token stands already in line {}, with rank {}",
                                       line_of[static_cast<size_t>(known->second)], known->second));
  }
  for (size_t rank = tokens->size(); rank-- > ranks.size();)
    if (line_of[rank] != 0)
      return BadLine(line_of[rank], fmt::format("expected the {} ranks 0 to {}, found rank {}",
                                                ranks.size(), ranks.size() - 1, rank));
  tokens->resize(ranks.size());
  return ranks;
}

Status FindByteRanks(const Ranks& ranks, std::array<int32_t, 256>* byte_tokens) {
  for (size_t byte = 0; byte < 256; ++byte) {
    const char text = static_cast<char>(byte);
    const auto found = ranks.find(std::string_view(&text, 1));
    if (found == ranks.end())
      return Corrupt(
          fmt::format("tiktoken.model: no rank for the single byte 0x{:02X}; byte-level BPE "
                      "needs all 256, found {} ranks",
                      byte, ranks.size()));
    (*byte_tokens)[byte] = found->second;
  }
  return {};
}

// Every pair of tokens whose concatenation is a token. In sorted order, the tokens that are a
// prefix of another token form a chain that ends right before it.
Result<std::vector<BpeMerge>> DeriveMerges(const std::vector<std::string>& tokens,
                                           const Ranks& ranks) {
  std::vector<int32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0);
  const auto text = [&](int32_t rank) -> std::string_view {
    return tokens[static_cast<size_t>(rank)];
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return text(a) < text(b); });
  std::vector<BpeMerge> merges;
  std::vector<int32_t> prefixes;  // each is a prefix of the next one
  size_t pairs = 0;
  for (const int32_t rank : order) {
    while (!prefixes.empty() && !text(rank).starts_with(text(prefixes.back()))) prefixes.pop_back();
    pairs += prefixes.size();
    if (pairs > kMaxPrefixPairs)
      return Corrupt(
          fmt::format("tiktoken.model: expected at most {} pairs of tokens of which "
                      "one begins the other, found more; trained tokens share far less",
                      kMaxPrefixPairs));
    for (const int32_t left : prefixes) {
      const auto right = ranks.find(text(rank).substr(text(left).size()));
      if (right != ranks.end()) merges.push_back({left, right->second, rank});
    }
    prefixes.push_back(rank);
  }
  return merges;
}

// Reads the ids after the ranks.
Status ReadReservedIds(const Json& decoder, TokenizerFile* file) {
  if (!decoder.is_object())
    return Corrupt(fmt::format("{}: expected an object of id: token", decoder.path()));
  const int64_t first = static_cast<int64_t>(file->token_bytes.size());
  std::vector<AddedToken> tokens(static_cast<size_t>(kReservedIds));
  LATTE_RETURN_IF_ERROR(decoder.ForEachMember([&](const std::string& key, const Json& v) -> Status {
    const std::optional<int64_t> id = ParseNumber(key);
    if (!id || *id < first || *id >= first + kReservedIds)
      return Corrupt(
          fmt::format("{}: expected an id from {} to {}, behind the ranks of "
                      "tiktoken.model, found '{}'",
                      decoder.path(), first, first + kReservedIds - 1, Printable(key)));
    AddedToken& token = tokens[static_cast<size_t>(*id - first)];
    if (!token.content.empty())
      return Corrupt(fmt::format("{}: id {} stands twice", decoder.path(), *id));
    LATTE_ASSIGN_OR_RETURN(token, ReadAddedToken(v));
    return {};
  }));
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < tokens.size(); ++i) {
    AddedToken& token = tokens[i];
    token.id = static_cast<int32_t>(first) + static_cast<int32_t>(i);
    token.normalized = false;  // tiktoken searches for all of them at once
    if (token.content.empty()) {
      token.content = fmt::format("<|reserved_token_{}|>", token.id);
      token.special = true;
    }
    if (!seen.insert(token.content).second)
      return Corrupt(fmt::format("{}: '{}' stands twice, the second time with id {}",
                                 decoder.path(), Printable(token.content), token.id));
    file->token_bytes.push_back(token.content);
  }
  file->added = std::move(tokens);
  file->is_byte_level.resize(file->token_bytes.size(), false);
  return {};
}

// Python's str.isspace, which accepts four control characters that are not in Unicode's
// White_Space.
bool IsPythonSpace(char32_t c) { return IsWhiteSpace(c) || (c >= 0x1C && c <= 0x1F); }

}  // namespace

Result<TokenizerFile> ParseTiktokenFile(std::string_view model, std::string_view config_json) {
  TokenizerFile file;
  LATTE_ASSIGN_OR_RETURN(const Ranks ranks, ReadRanks(model, &file.token_bytes));
  LATTE_RETURN_IF_ERROR(FindByteRanks(ranks, &file.byte_tokens));
  LATTE_ASSIGN_OR_RETURN(file.merges, DeriveMerges(file.token_bytes, ranks));
  file.is_byte_level.assign(file.token_bytes.size(), true);
  file.is_tiktoken = true;
  file.ignore_merges = true;
  file.steps.push_back({.pattern = std::string(kPattern)});
  LATTE_ASSIGN_OR_RETURN(const Json config, Json::Parse(config_json, "tokenizer_config.json"));
  LATTE_ASSIGN_OR_RETURN(const Json decoder, config.Get("added_tokens_decoder"));
  LATTE_RETURN_IF_ERROR(ReadReservedIds(decoder, &file));
  return file;
}

std::vector<std::string_view> TiktokenChunks(std::string_view text) {
  if (text.size() <= kMaxRunChars) return {text};
  std::vector<std::string_view> chunks;
  size_t begin = 0;
  size_t run = 0;  // length of the current run of characters of one kind
  bool run_is_space = false;
  size_t chars = 0;
  for (size_t at = 0; at < text.size(); ++chars) {
    const Utf8Step step = DecodeUtf8(text.substr(at));
    const bool space = IsPythonSpace(step.code_point);
    const bool full = chars == kMaxChunkChars;
    if (full || chars == 0 || space != run_is_space) run = 0;
    run_is_space = space;
    if (++run > kMaxRunChars || full) {
      chunks.push_back(text.substr(begin, at - begin));
      begin = at;
      run = 1;
      if (full) chars = 0;
    }
    at += static_cast<size_t>(step.bytes);
  }
  chunks.push_back(text.substr(begin));
  return chunks;
}

}  // namespace latte
