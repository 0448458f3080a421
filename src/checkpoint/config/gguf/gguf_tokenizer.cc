#include "src/checkpoint/config/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/base/json_out.h"
#include "src/checkpoint/config/gguf/gguf_sentencepiece.h"
#include "src/checkpoint/config/gguf/gguf_splitting.h"
#include "src/checkpoint/config/gguf/gguf_vocabulary.h"
#include "src/text/unicode/byte_level.h"
#include "src/text/unicode/printable.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

// Six times and three times what the largest published vocabularies have. They bound memory.
constexpr int64_t kMaxGgufTokens = int64_t{1} << 20;
constexpr int64_t kMaxGgufMerges = int64_t{1} << 20;
constexpr size_t kMaxVocabularyBytes = size_t{64} << 20;

constexpr size_t kTiktokenAdded = 256;  // tokenizer_tiktoken.h

// The ways to make tokens, and what they need.
struct GgufTokenizerKind {
  const GgufSplitting* splitting = nullptr;  // null: of SentencePiece's kind

  bool is_sentencepiece() const { return splitting == nullptr; }
  bool has_merges() const { return splitting != nullptr && !splitting->is_tiktoken; }
  bool adds_bos() const { return splitting == nullptr || splitting->adds_bos; }
};

}  // namespace

tl::unexpected<Error> BadTokenizerKey(const GgufMetadata& metadata, std::string_view key,
                                      std::string_view expected, std::string_view found) {
  return Corrupt(
      fmt::format("{}: metadata key '{}': expected {}, found {}; take another copy of "
                  "the model",
                  metadata.path(), key, expected, found));
}

tl::unexpected<Error> MissingTokenizerKey(const GgufMetadata& metadata, std::string_view key) {
  return Corrupt(fmt::format(
      "{}: metadata key '{}' is missing; take a newer copy of the model, or its safetensors copy",
      metadata.path(), key));
}

namespace {

Status CheckCount(const GgufMetadata& metadata, std::string_view key, int64_t most) {
  const GgufValue* value = metadata.Find(key);
  if (value == nullptr || value->count <= most) return {};
  return BadTokenizerKey(metadata, key, fmt::format("at most {} elements", most),
                         fmt::format("{}", value->count));
}

Result<GgufTokenizerKind> ReadKind(const GgufMetadata& metadata) {
  constexpr std::string_view kModelKey = "tokenizer.ggml.model";
  constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
  LATTE_ASSIGN_OR_RETURN(const auto model, metadata.String(kModelKey));
  if (!model) return MissingTokenizerKey(metadata, kModelKey);
  if (*model == "llama") return GgufTokenizerKind();
  if (*model != "gpt2")
    return Unsupported(
        fmt::format("{}: metadata key '{}': expected gpt2 (byte-level BPE) or llama "
                    "(SentencePiece), found '{}', which is not read; take the safetensors copy of "
                    "the model",
                    metadata.path(), kModelKey, Printable(*model, 60)));
  LATTE_ASSIGN_OR_RETURN(const auto pre, metadata.String(kPreKey));
  const GgufSplitting* splitting = pre ? FindGgufSplitting(*pre) : nullptr;
  if (splitting != nullptr) return GgufTokenizerKind{splitting};
  return Unsupported(fmt::format(
      "{}: metadata key '{}': expected a known way to split text ({}), found {}; with another one "
      "tokens would be wrong: take a newer copy of the model, or its safetensors copy",
      metadata.path(), kPreKey, GgufSplittingNames(),
      pre ? fmt::format("'{}'", Printable(*pre, 60)) : "no such key"));
}

// Checks the text and the type of token `id`.
Status CheckToken(const GgufMetadata& metadata, const GgufTokenizerKind& kind,
                  const GgufVocabulary& vocabulary, size_t id) {
  const std::string_view text = vocabulary.tokens[id];
  const int64_t type = vocabulary.types[id];
  if (type < kNormalToken || type > kByteToken)
    return BadTokenizerKey(metadata, kTypesKey,
                           fmt::format("types from {} to {}", +kNormalToken, +kByteToken),
                           fmt::format("type {} of token {}", type, id));
  if (type == kUnusedToken) return {};
  if (text.empty() || ValidUtf8Prefix(text) != text.size())
    return BadTokenizerKey(metadata, kTokensKey, "texts in UTF-8",
                           fmt::format("'{}' as token {}", Printable(text), id));
  std::string bytes;
  const bool is_byte = kind.is_sentencepiece()
                           ? IsByteOfSentencePiece(text)
                           : DecodeByteAlphabet(text, &bytes) && bytes.size() == 1;
  if (type == kByteToken && !is_byte)
    return BadTokenizerKey(metadata, kTokensKey, "tokens of type 6 to be one byte each",
                           fmt::format("'{}' as token {}", Printable(text), id));
  return {};
}

Status CheckGgufVocabulary(const GgufMetadata& metadata, const GgufTokenizerKind& kind,
                           const GgufVocabulary& vocabulary) {
  std::unordered_map<std::string_view, size_t> ids;
  ids.reserve(vocabulary.tokens.size());
  size_t bytes = 0;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    LATTE_RETURN_IF_ERROR(CheckToken(metadata, kind, vocabulary, id));
    bytes += vocabulary.tokens[id].size();
    if (vocabulary.types[id] == kUnusedToken) continue;
    const auto [known, is_new] = ids.emplace(vocabulary.tokens[id], id);
    if (!is_new)
      return BadTokenizerKey(metadata, kTokensKey, "each token once",
                             fmt::format("'{}' as token {} and as token {}",
                                         Printable(known->first), known->second, id));
  }
  for (const auto& [left, right] : vocabulary.merges) bytes += left.size() + right.size();
  if (bytes > kMaxVocabularyBytes)
    return BadTokenizerKey(
        metadata, kTokensKey,
        fmt::format("at most {} bytes of tokens and merges together", kMaxVocabularyBytes),
        fmt::format("{}", bytes));
  return {};
}

// "left right"; a token may begin with a space only as its first byte.
GgufMerge SplitMerge(std::string_view merge) {
  const size_t space = std::min(merge.find(' ', 1), merge.size());
  return {merge.substr(0, space), merge.substr(std::min(space + 1, merge.size()))};
}

Result<GgufVocabulary> ReadGgufVocabulary(const GgufMetadata& metadata,
                                          const GgufTokenizerKind& kind) {
  LATTE_RETURN_IF_ERROR(CheckCount(metadata, kTokensKey, kMaxGgufTokens));
  LATTE_RETURN_IF_ERROR(CheckCount(metadata, kTypesKey, kMaxGgufTokens));
  LATTE_RETURN_IF_ERROR(CheckCount(metadata, kMergesKey, kMaxGgufMerges));
  LATTE_ASSIGN_OR_RETURN(auto tokens, metadata.Strings(kTokensKey));
  if (!tokens) return MissingTokenizerKey(metadata, kTokensKey);
  if (tokens->empty()) return BadTokenizerKey(metadata, kTokensKey, "tokens", "none");
  LATTE_ASSIGN_OR_RETURN(auto types, metadata.Ints(kTypesKey));
  if (!types) return MissingTokenizerKey(metadata, kTypesKey);
  if (types->size() != tokens->size())
    return BadTokenizerKey(
        metadata, kTypesKey,
        fmt::format("{} elements, as many as {} has", tokens->size(), kTokensKey),
        fmt::format("{}", types->size()));
  LATTE_ASSIGN_OR_RETURN(const auto merges, metadata.Strings(kMergesKey));
  if (!merges && kind.has_merges()) return MissingTokenizerKey(metadata, kMergesKey);
  GgufVocabulary out{*std::move(tokens), *std::move(types), {}};
  if (kind.has_merges())
    std::ranges::transform(*merges, std::back_inserter(out.merges), SplitMerge);
  LATTE_RETURN_IF_ERROR(CheckGgufVocabulary(metadata, kind, out));
  if (kind.is_sentencepiece()) {
    LATTE_ASSIGN_OR_RETURN(out.merges, MergesOfScores(metadata, out, kMaxGgufMerges));
  }
  return out;
}

// The text of the token that `key` names by its id.
Result<std::optional<std::string>> ReadTokenOfKey(const GgufMetadata& metadata,
                                                  const GgufVocabulary& vocabulary,
                                                  std::string_view key) {
  LATTE_ASSIGN_OR_RETURN(const std::optional<int64_t> id, metadata.Int(key));
  if (!id) return std::nullopt;
  const auto count = static_cast<int64_t>(vocabulary.tokens.size());
  if (*id < 0 || *id >= count)
    return BadTokenizerKey(metadata, key, fmt::format("an id from 0 to {}", count - 1),
                           fmt::format("{}", *id));
  const auto at = static_cast<size_t>(*id);
  if (vocabulary.types[at] == kUnusedToken)
    return BadTokenizerKey(metadata, key, "the id of a token",
                           fmt::format("{}, which is unused", *id));
  std::string bytes;
  if (!vocabulary.IsAdded(at) && DecodeByteAlphabet(vocabulary.tokens[at], &bytes)) return bytes;
  return std::string(vocabulary.tokens[at]);
}

// What tokenizer_config.json says about templates.
Result<JsonOut> ReadGgufTemplates(const GgufMetadata& metadata) {
  LATTE_ASSIGN_OR_RETURN(const auto main, metadata.String(kTemplateKey));
  const std::string prefix = fmt::format("{}.", kTemplateKey);
  JsonOut named = JsonOut::array();
  const auto add = [&](std::string_view name, std::string_view text) {
    named.push_back({{"name", std::string(name)}, {"template", std::string(text)}});
  };
  if (main) add("default", *main);
  for (auto entry = metadata.entries().lower_bound(prefix);
       entry != metadata.entries().end() && entry->first.starts_with(prefix); ++entry) {
    LATTE_ASSIGN_OR_RETURN(const auto text, metadata.String(entry->first));
    const std::string_view name = std::string_view(entry->first).substr(prefix.size());
    if (!main || name != "default") add(name, *text);
  }
  if (named.empty()) return JsonOut(nullptr);
  if (main && named.size() == 1) return named[0]["template"];
  return named;
}

Result<JsonOut> TokenizerConfigJson(const GgufMetadata& metadata, const GgufVocabulary& vocabulary,
                                    const GgufTokenizerKind& kind) {
  JsonOut json = JsonOut::object();
  constexpr std::pair<std::string_view, const char*> kRoles[] = {
      {"tokenizer.ggml.bos_token_id", "bos_token"},
      {"tokenizer.ggml.eos_token_id", "eos_token"},
      {"tokenizer.ggml.padding_token_id", "pad_token"},
      // No config has these two; all three ends of answers are checked alike.
      {"tokenizer.ggml.eot_token_id", nullptr},
      {"tokenizer.ggml.eom_token_id", nullptr}};
  for (const auto& [key, name] : kRoles) {
    LATTE_ASSIGN_OR_RETURN(const auto text, ReadTokenOfKey(metadata, vocabulary, key));
    if (text && name != nullptr) json[name] = *text;
  }
  constexpr std::string_view kAddKey = "tokenizer.ggml.add_bos_token";
  LATTE_ASSIGN_OR_RETURN(const std::optional<bool> adds, metadata.Bool(kAddKey));
  const bool has_bos = json.contains("bos_token");
  json["add_bos_token"] = adds.value_or(kind.adds_bos() && has_bos);
  if (adds.value_or(false) && !has_bos)
    return BadTokenizerKey(metadata, kAddKey, "false without tokenizer.ggml.bos_token_id", "true");
  LATTE_ASSIGN_OR_RETURN(json["chat_template"], ReadGgufTemplates(metadata));
  return json;
}

void AppendJsonText(std::string_view text, std::string* out) {
  *out += Dump(JsonOut(std::string(text)));
}

// The id of the first token that stands behind the model's own vocabulary, as published files have
// their added tokens. Added tokens between others belong to the vocabulary.
size_t OwnVocabularyEnd(const GgufVocabulary& vocabulary) {
  const auto is_unused = [](int64_t type) { return type == kUnusedToken; };
  const std::vector<int64_t>& types = vocabulary.types;
  size_t end = types.size();
  while (end > 0 && is_unused(types[end - 1])) --end;
  const size_t all = end;
  while (end > 0 && vocabulary.IsAdded(end - 1)) --end;
  const bool gaps =
      std::any_of(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(end), is_unused);
  return gaps ? all : end;
}

// What tokenizer.json says besides its model.
std::string SplittingPipeline(const GgufSplitting& splitting) {
  JsonOut steps = JsonOut::array();
  for (const std::string_view pattern : splitting.patterns)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", std::string(pattern)}}},
                     {"behavior", "Isolated"}});
  steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
  return fmt::format(R"("pre_tokenizer":{},"decoder":{{"type":"ByteLevel"}})",
                     Dump({{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}));
}

// The tokens and merges are written one by one: finding a key among the members of a JsonOut takes
// time that grows with their number.
std::string TokenizerJson(const GgufVocabulary& vocabulary, const GgufTokenizerKind& kind,
                          const std::string& pipeline) {
  std::string vocab, added, merges;
  const size_t end = OwnVocabularyEnd(vocabulary);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.types[id] == kUnusedToken) continue;
    if (id < end) {
      if (!vocab.empty()) vocab += ',';
      AppendJsonText(vocabulary.tokens[id], &vocab);
      vocab += fmt::format(":{}", id);
    }
    if (!vocabulary.IsAdded(id)) continue;
    added += fmt::format(R"({}{{"id":{},"normalized":false,"special":{},"content":)",
                         added.empty() ? "" : ",", id, vocabulary.types[id] != kUserDefinedToken);
    AppendJsonText(vocabulary.tokens[id], &added);
    added += '}';
  }
  for (const auto& [left, right] : vocabulary.merges) {
    merges += merges.empty() ? "[" : ",[";
    AppendJsonText(left, &merges);
    merges += ',';
    AppendJsonText(right, &merges);
    merges += ']';
  }
  return fmt::format(
      R"({{"model":{{"type":"BPE","ignore_merges":{},"byte_fallback":{},"vocab":{{{}}},)"
      R"("merges":[{}]}},"added_tokens":[{}],{}}})",
      !kind.is_sentencepiece() && kind.splitting->ignore_merges, kind.is_sentencepiece(), vocab,
      merges, added, pipeline);
}

std::string EncodeBase64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    for (size_t i = at; i < at + 3; ++i)
      bits = bits << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0u);
    for (size_t i = 0; i < 4; ++i)
      out += at + i > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * i) & 63];
  }
  return out;
}

// Kimi's files: the ranks of the tokens are their ids, and the merges follow from them.
Result<Tokenizer> TokenizerOfRanks(const GgufMetadata& metadata, const GgufVocabulary& vocabulary,
                                   JsonOut config, const std::string& place) {
  const size_t count = vocabulary.tokens.size();
  size_t ranks = 0;
  while (ranks < count && !vocabulary.IsAdded(ranks) && vocabulary.types[ranks] != kUnusedToken)
    ++ranks;
  if (count - ranks != kTiktokenAdded)
    return BadTokenizerKey(
        metadata, kTypesKey,
        fmt::format("normal tokens and {} others behind them, as kimi-k2 has", kTiktokenAdded),
        fmt::format("{} others behind the first {}", count - ranks, ranks));
  std::string model, bytes;
  for (size_t id = 0; id < ranks; ++id) {
    if (!DecodeByteAlphabet(vocabulary.tokens[id], &bytes))
      return BadTokenizerKey(metadata, kTokensKey, "texts in the byte-level alphabet",
                             fmt::format("'{}' as token {}", Printable(vocabulary.tokens[id]), id));
    model += fmt::format("{} {}\n", EncodeBase64(bytes), id);
  }
  JsonOut added = JsonOut::object();
  for (size_t id = ranks; id < count; ++id) {
    if (!vocabulary.IsAdded(id) && vocabulary.types[id] != kUnusedToken)
      return BadTokenizerKey(
          metadata, kTypesKey,
          fmt::format("no normal token behind the first {}, as in kimi-k2", ranks),
          fmt::format("type {} of token {}", vocabulary.types[id], id));
    if (vocabulary.types[id] != kUnusedToken)
      added[fmt::format("{}", id)] = {{"content", std::string(vocabulary.tokens[id])},
                                      {"special", vocabulary.types[id] != kUserDefinedToken}};
  }
  config["added_tokens_decoder"] = std::move(added);
  return WithAdvice(Tokenizer::FromTiktoken(model, Dump(config), place));
}

}  // namespace

Result<Tokenizer> ParseGgufTokenizer(const GgufMetadata& metadata) {
  LATTE_ASSIGN_OR_RETURN(const GgufTokenizerKind kind, ReadKind(metadata));
  LATTE_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary, ReadGgufVocabulary(metadata, kind));
  LATTE_ASSIGN_OR_RETURN(JsonOut config, TokenizerConfigJson(metadata, vocabulary, kind));
  const std::string place = metadata.path() + ", its metadata as ";
  if (!kind.is_sentencepiece() && kind.splitting->is_tiktoken)
    return TokenizerOfRanks(metadata, vocabulary, std::move(config), place);
  LATTE_ASSIGN_OR_RETURN(const std::string pipeline, kind.is_sentencepiece()
                                                         ? SentencePiecePipeline(metadata)
                                                         : SplittingPipeline(*kind.splitting));
  return WithAdvice(
      Tokenizer::FromJson(TokenizerJson(vocabulary, kind, pipeline), Dump(config), place));
}

}  // namespace latte
