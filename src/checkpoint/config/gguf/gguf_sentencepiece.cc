#include "src/checkpoint/config/gguf/gguf_sentencepiece.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/base/strings.h"

namespace latte {
namespace {

constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kMark = "\xE2\x96\x81";  // "▁"

// Looking a token's parts up takes the square of its length. Published vocabularies need a
// thousandth of this.
constexpr size_t kMostSquaredBytes = size_t{1} << 30;

Result<std::vector<float>> ReadScores(const GgufMetadata& metadata,
                                      const GgufVocabulary& vocabulary) {
  LATTE_ASSIGN_OR_RETURN(auto scores, metadata.Floats(kScoresKey));
  if (!scores) return MissingTokenizerKey(metadata, kScoresKey);
  if (scores->size() != vocabulary.tokens.size())
    return BadTokenizerKey(metadata, kScoresKey,
                           fmt::format("{} elements, one for each token", vocabulary.tokens.size()),
                           fmt::format("{}", scores->size()));
  return *std::move(scores);
}

}  // namespace

bool IsByteOfSentencePiece(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token[5] == '>' &&
         HexDigit(token[3]) >= 0 && HexDigit(token[4]) >= 0;
}

Result<std::vector<GgufMerge>> MergesOfScores(const GgufMetadata& metadata,
                                              const GgufVocabulary& vocabulary, size_t most) {
  LATTE_ASSIGN_OR_RETURN(const std::vector<float> scores, ReadScores(metadata, vocabulary));
  std::unordered_map<std::string_view, size_t> ids;
  std::vector<size_t> by_score;
  size_t squared_bytes = 0;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.types[id] != kNormalToken) continue;
    const std::string_view token = vocabulary.tokens[id];
    ids.emplace(token, id);
    by_score.push_back(id);
    squared_bytes += token.size() * token.size();
  }
  if (squared_bytes > kMostSquaredBytes)
    return BadTokenizerKey(
        metadata, "tokenizer.ggml.tokens", "tokens of a few bytes each",
        fmt::format("squares of their lengths that add up to {}", squared_bytes));
  std::ranges::stable_sort(by_score, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<GgufMerge> merges;
  for (const size_t id : by_score) {
    const std::string_view token = vocabulary.tokens[id];
    std::vector<std::pair<size_t, size_t>> pairs;
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ids.find(token.substr(0, cut));
      if (left == ids.end()) continue;
      const auto right = ids.find(token.substr(cut));
      if (right != ids.end()) pairs.emplace_back(left->second, right->second);
    }
    std::ranges::sort(pairs);
    for (const auto& [left, right] : pairs)
      merges.emplace_back(vocabulary.tokens[left], vocabulary.tokens[right]);
    if (merges.size() > most)
      return BadTokenizerKey(metadata, "tokenizer.ggml.tokens",
                             fmt::format("at most {} pairs of tokens that make a third", most),
                             "more");
  }
  return merges;
}

Result<std::string> SentencePiecePipeline(const GgufMetadata& metadata) {
  constexpr std::string_view kTrimKey = "tokenizer.ggml.remove_extra_whitespaces";
  LATTE_ASSIGN_OR_RETURN(const std::optional<bool> trims, metadata.Bool(kTrimKey));
  if (trims.value_or(false))
    return Unsupported(fmt::format(
        "{}: metadata key '{}': expected false, found true; take the safetensors copy of "
        "the model",
        metadata.path(), kTrimKey));
  LATTE_ASSIGN_OR_RETURN(const std::optional<bool> prefix,
                         metadata.Bool("tokenizer.ggml.add_space_prefix"));
  const auto replace = [](std::string_view from, std::string_view to) {
    return JsonOut{{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  JsonOut normalizers = JsonOut::array();
  JsonOut decoders =
      JsonOut::array({replace(kMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (prefix.value_or(true)) {
    normalizers.push_back({{"type", "Prepend"}, {"prepend", kMark}});
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  normalizers.push_back(replace(" ", kMark));
  return fmt::format(R"("normalizer":{},"decoder":{})",
                     Dump(JsonOut{{"type", "Sequence"}, {"normalizers", std::move(normalizers)}}),
                     Dump(JsonOut{{"type", "Sequence"}, {"decoders", std::move(decoders)}}));
}

}  // namespace latte
