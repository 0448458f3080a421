#include "src/text/tokenizer_json.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/base/json.h"
#include "src/text/pretokenize_json.h"
#include "src/text/unicode/byte_level.h"
#include "src/text/unicode/printable.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 24;
// Longer than any real added token. It bounds the work of searching for one at every byte of a
// text.
constexpr size_t kMaxAddedTokenBytes = 1024;

using Vocabulary = std::unordered_map<std::string_view, int32_t>;  // by the file's spelling

// Dropout is the share of merges to leave out at random; 0 means none.
Status CheckDropout(const Json& model) {
  const auto value = model.Find("dropout");
  if (!value) return {};
  const Result<double> share = value->AsDouble();
  if (share && *share == 0) return {};
  return Unsupported(fmt::format("{}: expected null or 0, found merges that are left out at random",
                                 value->path()));
}

// unk_token, fuse_unk and byte_fallback apply to characters without a token. There are none:
// ReadPipeline makes every text end as bytes, and FindByteEntries checks that all 256 bytes have a
// token.
Status CheckModelSettings(const Json& model) {
  LATTE_ASSIGN_OR_RETURN(const std::string type, model.GetStringOr("type", "BPE"));
  if (type != "BPE")
    return Unsupported(
        fmt::format("{}: expected model type BPE, found '{}'", model.path(), Printable(type)));
  LATTE_RETURN_IF_ERROR(CheckDropout(model));
  // Some converters write "", which means the same as null.
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    LATTE_ASSIGN_OR_RETURN(const std::string affix, model.GetStringOr(key, ""));
    if (!affix.empty())
      return Unsupported(fmt::format("{}: '{}' is not supported: expected null, found '{}'",
                                     model.path(), key, Printable(affix)));
  }
  return {};
}

// The byte that a token of SentencePiece spells: <0x0A>.
std::optional<uint8_t> SpelledByte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  uint8_t byte = 0;
  const char* const end = token.data() + 5;
  const auto [stop, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return byte;
}

// The bytes that a token of SentencePiece stands for; false: it is a single byte by number.
bool DecodeSentencePiece(std::string_view token, std::string* bytes) {
  bytes->clear();
  if (const auto byte = SpelledByte(token)) {
    *bytes += static_cast<char>(*byte);
    return false;
  }
  for (size_t at = 0; at < token.size();) {
    const bool space = token.substr(at).starts_with(kMetaspace);
    *bytes += space ? ' ' : token[at];
    at += space ? kMetaspace.size() : 1;
  }
  return true;
}

void DecodeToken(std::string_view token, size_t id, TokenizerFile* file) {
  std::string& bytes = file->token_bytes[id];
  if (file->is_sentencepiece) {
    file->is_byte_level[id] = DecodeSentencePiece(token, &bytes);
    const Utf8Step first = DecodeUtf8(token);
    if (!token.empty() && std::cmp_equal(first.bytes, token.size()))
      file->characters.emplace(first.code_point, static_cast<int32_t>(id));
    return;
  }
  file->is_byte_level[id] = DecodeByteAlphabet(token, &bytes);
  if (!file->is_byte_level[id]) bytes = token;
}

// The tokens of the file by spelling; `file` gets them by id.
Result<Vocabulary> ReadVocabulary(const Json& vocab, TokenizerFile* file) {
  if (!vocab.is_object())
    return Corrupt(fmt::format("{}: expected an object of token: id", vocab.path()));
  Vocabulary ids;
  ids.reserve(vocab.size());
  // A few ids without a token are harmless. A table for ids far beyond the number of tokens is not.
  const int64_t end = std::min(2 * static_cast<int64_t>(vocab.size()) + 256, kMaxTokens);
  std::vector<bool> taken(static_cast<size_t>(end), false);
  int64_t highest = -1;
  LATTE_RETURN_IF_ERROR(vocab.ForEachMember([&](const std::string& token, const Json& v) -> Status {
    LATTE_ASSIGN_OR_RETURN(const int64_t id, v.AsInt());
    if (id < 0 || id >= end)
      return Corrupt(
          fmt::format("{}: token '{}' has id {}; expected 0 to {}, as there are {} "
                      "tokens",
                      vocab.path(), Printable(token), id, end - 1, vocab.size()));
    if (taken[static_cast<size_t>(id)])
      return Corrupt(fmt::format("{}: id {} of token '{}' is taken by another token", vocab.path(),
                                 id, Printable(token)));
    taken[static_cast<size_t>(id)] = true;
    highest = std::max(highest, id);
    ids.emplace(token, static_cast<int32_t>(id));
    return {};
  }));
  file->token_bytes.resize(static_cast<size_t>(highest + 1));
  file->is_byte_level.resize(static_cast<size_t>(highest + 1));
  for (const auto& [token, id] : ids) {
    DecodeToken(token, static_cast<size_t>(id), file);
  }
  return ids;
}

Status FindByteEntries(const Json& vocab, const Vocabulary& ids, TokenizerFile* file) {
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::string spelling = file->is_sentencepiece
                                     ? fmt::format("<0x{:02X}>", byte)
                                     : std::string(ByteAlphabetSymbol(static_cast<uint8_t>(byte)));
    const auto found = ids.find(spelling);
    if (found == ids.end())
      return Corrupt(fmt::format("{}: no token for byte 0x{:02X} ('{}'); {} needs all 256",
                                 vocab.path(), byte, spelling,
                                 file->is_sentencepiece ? "byte_fallback" : "byte-level BPE"));
    file->byte_tokens[byte] = found->second;
  }
  return {};
}

// "a b" or ["a", "b"].
Result<std::pair<std::string, std::string>> ReadMergeParts(const Json& merge) {
  if (merge.is_array() && merge.size() == 2) {
    LATTE_ASSIGN_OR_RETURN(std::string left, merge.At(0).AsString());
    LATTE_ASSIGN_OR_RETURN(std::string right, merge.At(1).AsString());
    return std::pair(std::move(left), std::move(right));
  }
  if (merge.is_string()) {
    LATTE_ASSIGN_OR_RETURN(const std::string text, merge.AsString());
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos)
      return std::pair(text.substr(0, space), text.substr(space + 1));
  }
  return Corrupt(fmt::format("{}: expected a merge as \"a b\" or [\"a\", \"b\"]", merge.path()));
}

// Where texts can be cut so that no merge is lost: before runs of "▁", unless a merge makes a token
// that goes on after one. Words are much cheaper to encode than whole texts.
void CutBeforeWords(const Vocabulary& ids, TokenizerFile* file) {
  std::vector<bool> made(file->token_bytes.size());
  for (const BpeMerge& merge : file->merges) made[static_cast<size_t>(merge.result)] = true;
  for (const auto& [token, id] : ids)
    for (size_t at = token.find(kMetaspace, 1); made[static_cast<size_t>(id)] && at < token.size();
         at = token.find(kMetaspace, at + 1))
      if (!token.substr(0, at).ends_with(kMetaspace)) return;
  if (file->steps[0].cut == PreTokenizeStep::Cut::kNowhere)
    file->steps[0].cut = PreTokenizeStep::Cut::kBeforeRuns;
}

Status ReadMerges(const Json& merges, const Vocabulary& ids, TokenizerFile* file) {
  if (!merges.is_array()) return Corrupt(fmt::format("{}: expected an array", merges.path()));
  file->merges.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json merge = merges.At(i);
    LATTE_ASSIGN_OR_RETURN(auto parts, ReadMergeParts(merge));
    auto& [left, right] = parts;
    if (left.starts_with("#version") && merge.is_string()) continue;
    BpeMerge made;
    const std::string joined = left + right;
    const std::pair<std::string_view, int32_t*> wanted[] = {
        {left, &made.left}, {right, &made.right}, {joined, &made.result}};
    for (const auto& [token, id] : wanted) {
      const auto found = ids.find(token);
      if (found == ids.end() || token.empty())
        return Corrupt(
            fmt::format("{}: merge of '{}' and '{}' needs the token '{}', which is not "
                        "in 'model.vocab'",
                        merge.path(), Printable(left), Printable(right), Printable(token)));
      *id = found->second;
    }
    file->merges.push_back(made);
  }
  return {};
}

// `tokenizers` numbers added tokens itself: a token of the vocabulary keeps its id, and the others
// follow after the vocabulary in file order. A file with other ids would mean different tokens
// there.
Status ReadAddedTokens(const Json& list, const Vocabulary& ids, TokenizerFile* file) {
  if (!list.is_array()) return Corrupt(fmt::format("{}: expected an array", list.path()));
  std::unordered_map<std::string, size_t> seen;
  int64_t next = static_cast<int64_t>(ids.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json entry = list.At(i);
    LATTE_ASSIGN_OR_RETURN(AddedToken token, ReadAddedToken(entry));
    LATTE_ASSIGN_OR_RETURN(const int64_t id, entry.GetInt("id"));
    if (!seen.emplace(token.content, i).second)
      return Corrupt(fmt::format("{}: '{}' stands twice", entry.path(), Printable(token.content)));
    const auto known = ids.find(token.content);
    const int64_t expected = known != ids.end() ? known->second : next++;
    if (id != expected)
      return Corrupt(fmt::format(
          "{}: '{}' has id {}; expected {}, {}", entry.path(), token.content, id, expected,
          known != ids.end() ? "its id in 'model.vocab'" : "the next one behind the vocabulary"));
    const size_t at = static_cast<size_t>(id);
    if (at < file->token_bytes.size() && known == ids.end())
      return Corrupt(fmt::format("{}: id {} of '{}' is taken in 'model.vocab'", entry.path(), id,
                                 Printable(token.content)));
    if (at >= file->token_bytes.size()) {
      file->token_bytes.resize(at + 1);
      file->is_byte_level.resize(at + 1);
    }
    file->token_bytes[at] = token.content;
    token.id = static_cast<int32_t>(id);
    file->added.push_back(std::move(token));
  }
  return {};
}

// SentencePiece's kind needs byte_fallback, and ignore_merges would look up whole texts.
Status CheckSentencePieceModel(const Json& model, const TokenizerFile& file) {
  LATTE_ASSIGN_OR_RETURN(const bool bytes, model.GetBoolOr("byte_fallback", false));
  if (bytes && !file.ignore_merges) return {};
  return Unsupported(fmt::format(
      "{}: expected byte_fallback true and ignore_merges false with a ByteFallback decoder, found "
      "{} and {}",
      model.path(), bytes, file.ignore_merges));
}

// The normalizer would change the spelling that the token is searched by.
Status CheckAreNotNormalized(const Json& root, const std::vector<AddedToken>& added) {
  for (const AddedToken& token : added)
    if (token.normalized)
      return Unsupported(fmt::format(
          "{}: added token '{}': expected normalized false with a normalizer, found true",
          root.path(), Printable(token.content)));
  return {};
}

// A token of the config: a string, or an object with `content`.
Result<std::optional<std::string>> ReadConfigToken(const Json& config, std::string_view key) {
  const auto value = config.Find(key);
  if (!value) return std::optional<std::string>();
  LATTE_ASSIGN_OR_RETURN(std::string text,
                         value->is_object() ? value->GetString("content") : value->AsString());
  return std::optional<std::string>(std::move(text));
}

}  // namespace

Result<AddedToken> ReadAddedToken(const Json& entry) {
  AddedToken token;
  LATTE_ASSIGN_OR_RETURN(token.content, entry.GetString("content"));
  LATTE_ASSIGN_OR_RETURN(token.single_word, entry.GetBoolOr("single_word", false));
  LATTE_ASSIGN_OR_RETURN(token.lstrip, entry.GetBoolOr("lstrip", false));
  LATTE_ASSIGN_OR_RETURN(token.rstrip, entry.GetBoolOr("rstrip", false));
  LATTE_ASSIGN_OR_RETURN(token.normalized, entry.GetBoolOr("normalized", true));
  LATTE_ASSIGN_OR_RETURN(token.special, entry.GetBoolOr("special", false));
  if (token.content.empty() || token.content.size() > kMaxAddedTokenBytes)
    return Corrupt(fmt::format("{}: expected a content of 1 to {} bytes, found {}", entry.path(),
                               kMaxAddedTokenBytes, token.content.size()));
  return token;
}

Result<TokenizerFile> ParseTokenizerFile(std::string_view json) {
  LATTE_ASSIGN_OR_RETURN(const Json root, Json::Parse(json, "tokenizer.json"));
  LATTE_ASSIGN_OR_RETURN(const std::string version, root.GetStringOr("version", "1.0"));
  if (version != "1.0")
    return Unsupported(
        fmt::format("{}: expected version 1.0, found '{}'", root.path(), Printable(version)));
  LATTE_ASSIGN_OR_RETURN(const Json model, root.Get("model"));
  LATTE_RETURN_IF_ERROR(CheckModelSettings(model));
  TokenizerFile file;
  LATTE_ASSIGN_OR_RETURN(TokenizerPipeline pipeline, ReadPipeline(root));
  file.steps = std::move(pipeline.steps);
  file.template_bos = std::move(pipeline.template_bos);
  file.is_sentencepiece = pipeline.sentencepiece;
  file.strips_space = pipeline.strips_space;
  LATTE_ASSIGN_OR_RETURN(file.ignore_merges, model.GetBoolOr("ignore_merges", false));
  if (file.is_sentencepiece) LATTE_RETURN_IF_ERROR(CheckSentencePieceModel(model, file));
  LATTE_ASSIGN_OR_RETURN(const Json vocab, model.Get("vocab"));
  LATTE_ASSIGN_OR_RETURN(const Vocabulary ids, ReadVocabulary(vocab, &file));
  LATTE_RETURN_IF_ERROR(FindByteEntries(vocab, ids, &file));
  LATTE_ASSIGN_OR_RETURN(const Json merges, model.Get("merges"));
  LATTE_RETURN_IF_ERROR(ReadMerges(merges, ids, &file));
  if (file.is_sentencepiece) CutBeforeWords(ids, &file);
  if (const auto added = root.Find("added_tokens"))
    LATTE_RETURN_IF_ERROR(ReadAddedTokens(*added, ids, &file));
  if (pipeline.normalizes) LATTE_RETURN_IF_ERROR(CheckAreNotNormalized(root, file.added));
  return file;
}

Result<TokenizerConfig> ParseTokenizerConfig(std::string_view json, std::string_view place) {
  LATTE_ASSIGN_OR_RETURN(const Json root,
                         Json::Parse(json, fmt::format("{}tokenizer_config.json", place)));
  if (!root.is_object()) return Corrupt(fmt::format("{}: expected an object", root.path()));
  TokenizerConfig config;
  LATTE_ASSIGN_OR_RETURN(config.bos_token, ReadConfigToken(root, "bos_token"));
  LATTE_ASSIGN_OR_RETURN(config.eos_token, ReadConfigToken(root, "eos_token"));
  // The pad token often comes from a fine-tune and may have no place in the vocabulary. Latte never
  // pads.
  if (auto pad = ReadConfigToken(root, "pad_token")) config.pad_token = *std::move(pad);
  if (const auto add_bos = root.Find("add_bos_token")) {
    LATTE_ASSIGN_OR_RETURN(config.add_bos_token, add_bos->AsBool());
  }
  config.lists_added_tokens = root.Find("added_tokens_decoder").has_value();
  config.chat_template = ReadChatTemplate(root);
  return config;
}

Status AddSpecialTokensMap(std::string_view json, TokenizerConfig* config) {
  LATTE_ASSIGN_OR_RETURN(const Json root, Json::Parse(json, "special_tokens_map.json"));
  if (!root.is_object()) return Corrupt(fmt::format("{}: expected an object", root.path()));
  if (!config->bos_token) {
    LATTE_ASSIGN_OR_RETURN(config->bos_token, ReadConfigToken(root, "bos_token"));
  }
  if (!config->eos_token) {
    LATTE_ASSIGN_OR_RETURN(config->eos_token, ReadConfigToken(root, "eos_token"));
  }
  return {};
}

}  // namespace latte
