#include "src/text/tokenizer.h"

#include <array>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "src/base/file.h"
#include "src/text/added_tokens.h"
#include "src/text/bpe.h"
#include "src/text/chat_template_files.h"
#include "src/text/pretokenize.h"
#include "src/text/tokenizer_json.h"
#include "src/text/tokenizer_tiktoken.h"
#include "src/text/unicode/printable.h"
#include "src/text/unicode/unicode.h"

namespace latte {
namespace {

constexpr int64_t kMaxTokenizerBytes = int64_t{256} << 20;
constexpr int64_t kMaxTiktokenBytes = int64_t{64} << 20;
constexpr size_t kMaxTextBytes = (size_t{1} << 31) - 1;

using TokenIds = std::unordered_map<std::string_view, int32_t>;

// Tokens that ignore_merges may use for a whole piece. A special token is never one of them: it
// comes from text only if the caller of Encode sets parse_special.
Bpe::WholePieces WholePieces(const TokenizerFile& file, const std::vector<bool>& special) {
  Bpe::WholePieces pieces;
  if (!file.ignore_merges) return pieces;
  for (size_t id = 0; id < file.token_bytes.size(); ++id)
    if (file.is_byte_level[id] && !special[id])
      pieces.emplace(file.token_bytes[id], static_cast<int32_t>(id));
  return pieces;
}

TokenIds IndexTokens(const TokenizerFile& file) {
  TokenIds ids;
  ids.reserve(file.token_bytes.size());
  for (const AddedToken& token : file.added)
    ids.emplace(file.token_bytes[static_cast<size_t>(token.id)], token.id);
  for (const bool byte_level : {true, false})
    for (size_t id = 0; id < file.token_bytes.size(); ++id)
      if (file.is_byte_level[id] == byte_level && !file.token_bytes[id].empty())
        ids.emplace(file.token_bytes[id], static_cast<int32_t>(id));
  return ids;
}

}  // namespace

// Merging the bytes of a word takes some 40 bytes of memory for each.
constexpr size_t kMaxWordBytes = 1 << 20;

struct Tokenizer::State {
  State(TokenizerFile parsed, TokenizerConfig settings, std::vector<bool> special_tokens,
        PreTokenizer splitter, AddedTokens finder)
      : file(std::move(parsed)),
        config(std::move(settings)),
        special(std::move(special_tokens)),
        pre_tokenizer(std::move(splitter)),
        added(std::move(finder)),
        bpe(file.byte_tokens, file.merges, WholePieces(file, special),
            file.is_tiktoken ? MergeOrder::kByResult : MergeOrder::kByPlace, file.characters),
        ids(IndexTokens(file)) {
    file.merges = {};  // Bpe has its own copy
    const auto takes_space = [](const AddedToken& token) { return token.lstrip || token.rstrip; };
    if (std::any_of(file.added.begin(), file.added.end(), takes_space)) return;
    for (const std::string& bytes : file.token_bytes)
      max_token_bytes = std::max(max_token_bytes, bytes.size());
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Buffers of one call to Encode.
  struct Scratch {
    explicit Scratch(const PreTokenizer& pre_tokenizer) : words(pre_tokenizer) {}
    PreTokenizer::Scratch words;
    BpeScratch bpe;
  };

  // Appends the ids of text without added tokens. `at_start`: nothing stands before it.
  Status EncodePlain(std::string_view text, bool at_start, Scratch* scratch,
                     std::vector<int32_t>* out) const {
    scratch->words.at_start = at_start;
    return pre_tokenizer.Split(text, &scratch->words, [&](std::string_view word) -> Status {
      if (word.size() > kMaxWordBytes)
        return InvalidArgument(fmt::format(
            "text: a word of {} bytes, expected at most {}; put a space or the end of a "
            "line into it",
            word.size(), kMaxWordBytes));
      bpe.Encode(word, &scratch->bpe, out);
      return {};
    });
  }

  // The parts of a text that are encoded separately.
  std::vector<std::string_view> Chunks(std::string_view text) const {
    return file.is_tiktoken ? TiktokenChunks(text) : std::vector{text};
  }

  TokenizerFile file;
  TokenizerConfig config;
  std::vector<bool> special;  // by id
  PreTokenizer pre_tokenizer;
  AddedTokens added;
  Bpe bpe;       // its keys point into `file`
  TokenIds ids;  // its keys point into `file` too
  std::optional<int32_t> bos, eos, pad;
  size_t max_token_bytes = 0;
};

namespace {

std::optional<int32_t> FindToken(const TokenIds& ids, const std::optional<std::string>& text) {
  const auto found = text ? ids.find(*text) : ids.end();
  if (found == ids.end()) return std::nullopt;
  return found->second;
}

tl::unexpected<Error> NoSuchToken(std::string_view key, std::string_view text,
                                  std::string_view needed_by) {
  return Corrupt(fmt::format(
      "tokenizer_config.json: '{}' is '{}', which is no token of this tokenizer, and {} needs it",
      key, Printable(text), needed_by));
}

Error WithFileName(Error error) {
  error.message = "tokenizer.json: " + error.message;
  return error;
}

Status CheckSize(size_t bytes) {
  if (bytes <= kMaxTextBytes) return {};
  return InvalidArgument(fmt::format("text of {} bytes: expected at most {}; encode it in parts",
                                     bytes, kMaxTextBytes));
}

// Growing from here by factors of two ends at one token per byte, not at twice that.
void ReserveIds(size_t bytes, std::vector<int32_t>* ids) { ids->reserve(bytes / 4 + 4); }

struct JoinedText {
  std::string text;  // valid UTF-8
  std::vector<AddedTokens::Range> template_ranges;
};

// Replaces invalid UTF-8 in each run separately: bytes of different trust never form a code point
// together.
JoinedText Join(std::span<const TextPiece> pieces) {
  JoinedText out;
  for (size_t i = 0; i < pieces.size();) {
    const bool from_template = pieces[i].from_template;
    std::string run;
    for (;
         i < pieces.size() && (pieces[i].from_template == from_template || pieces[i].text.empty());
         ++i)
      run += pieces[i].text;
    const size_t begin = out.text.size();
    AppendValidUtf8(run, &out.text);
    if (from_template && begin < out.text.size())
      out.template_ranges.push_back({begin, out.text.size()});
  }
  return out;
}

// The text of an optional file; nullopt if it does not exist.
Result<std::optional<std::string>> ReadIfThere(const std::string& path) {
  if (!Exists(path)) return std::optional<std::string>();
  return ReadFile(path, kMaxTokenizerBytes).map([](std::string text) {
    return std::optional(std::move(text));
  });
}

// Takes the tokens that tokenizer_config.json does not define from special_tokens_map.json.
Status ReadSpecialTokensMap(const std::string& dir, TokenizerConfig* names) {
  if (names->lists_added_tokens || (names->bos_token && names->eos_token)) return {};
  const std::string name = "special_tokens_map.json";
  if (!IsRegularFile(fmt::format("{}/{}", dir, name))) return {};
  LATTE_ASSIGN_OR_RETURN(const std::string text,
                         ReadFile(fmt::format("{}/{}", dir, name), kMaxTokenizerBytes));
  return AddSpecialTokensMap(text, names);
}

}  // namespace

Result<Tokenizer> Tokenizer::FromJson(std::string_view tokenizer_json, std::string_view config_json,
                                      std::string_view place) {
  return FromTexts(ParseTokenizerFile(tokenizer_json), config_json, place);
}

Result<Tokenizer> Tokenizer::FromTiktoken(std::string_view tiktoken_model,
                                          std::string_view config_json, std::string_view place) {
  return FromTexts(ParseTiktokenFile(tiktoken_model, config_json), config_json, place);
}

Result<Tokenizer> Tokenizer::FromTexts(Result<TokenizerFile> file, std::string_view config_json,
                                       std::string_view place) {
  const auto at_place = [&](Error error) {
    error.message.insert(0, place);
    return error;
  };
  if (!file) return tl::unexpected(at_place(std::move(file).error()));
  TokenizerConfig config;
  if (!config_json.empty()) {
    LATTE_ASSIGN_OR_RETURN(config, ParseTokenizerConfig(config_json, place));
  }
  return Build(*std::move(file), std::move(config)).map_error(at_place);
}

Result<Tokenizer> Tokenizer::Build(TokenizerFile file, TokenizerConfig config) {
  if (!config.bos_token) config.bos_token = file.template_bos;
  LATTE_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer,
                         PreTokenizer::Create(file.steps).map_error(WithFileName));
  LATTE_ASSIGN_OR_RETURN(AddedTokens added, AddedTokens::Create(file.added));
  std::vector<bool> special(file.token_bytes.size());
  for (const AddedToken& token : file.added) special[static_cast<size_t>(token.id)] = token.special;
  const auto state = std::make_shared<State>(std::move(file), std::move(config), std::move(special),
                                             std::move(pre_tokenizer), std::move(added));
  const TokenizerConfig& names = state->config;
  state->bos = FindToken(state->ids, names.bos_token);
  state->eos = FindToken(state->ids, names.eos_token);
  state->pad = FindToken(state->ids, names.pad_token);
  Tokenizer out(state);
  if (out.adds_bos() && names.bos_token && !state->bos)
    return NoSuchToken("bos_token", *names.bos_token, "every prompt");
  return out;
}

Result<Tokenizer> Tokenizer::Load(const std::string& dir) {
  const std::string json_path = dir + "/tokenizer.json";
  const std::string tiktoken_path = dir + "/tiktoken.model";
  const std::string config_path = dir + "/tokenizer_config.json";
  const bool tiktoken = !Exists(json_path) && Exists(tiktoken_path);
  LATTE_ASSIGN_OR_RETURN(const std::string text, tiktoken
                                                     ? ReadFile(tiktoken_path, kMaxTiktokenBytes)
                                                     : ReadFile(json_path, kMaxTokenizerBytes));
  LATTE_ASSIGN_OR_RETURN(const std::optional<std::string> config, ReadIfThere(config_path));
  if (tiktoken && !config)
    return NotFound(config_path + ": expected this file next to tiktoken.model, found none");
  const auto in_folder = [&](Error error) {
    error.message = fmt::format("{}/{}", dir, error.message);
    return error;
  };
  LATTE_ASSIGN_OR_RETURN(TokenizerFile file,
                         (tiktoken ? ParseTiktokenFile(text, *config) : ParseTokenizerFile(text))
                             .map_error(in_folder));
  TokenizerConfig names;
  if (config) {
    LATTE_ASSIGN_OR_RETURN(names, ParseTokenizerConfig(*config).map_error(in_folder));
  }
  if (names.chat_template.problem)
    names.chat_template.problem = in_folder(*names.chat_template.problem);
  LATTE_RETURN_IF_ERROR(ReadSpecialTokensMap(dir, &names).map_error(in_folder));
  LATTE_ASSIGN_OR_RETURN(names.chat_template,
                         LoadChatTemplate(dir, std::move(names.chat_template)));
  return Build(std::move(file), std::move(names)).map_error(in_folder);
}

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text, EncodeOptions options) const {
  LATTE_RETURN_IF_ERROR(CheckSize(text.size()));
  std::vector<int32_t> ids;
  if (options.add_bos) {
    if (!state_->bos)
      return InvalidArgument("the tokenizer has no BOS token: the files of the model name none");
    ids.push_back(*state_->bos);
  }
  std::string repaired;
  if (ValidUtf8Prefix(text) != text.size()) {
    AppendValidUtf8(text, &repaired);
    text = repaired;
  }
  ReserveIds(text.size(), &ids);
  State::Scratch scratch(state_->pre_tokenizer);
  for (const std::string_view chunk : state_->Chunks(text)) {
    LATTE_ASSIGN_OR_RETURN(const auto pieces,
                           state_->added.Split(chunk, options.parse_special, options.parse_added));
    for (const AddedTokens::Piece& piece : pieces) {
      if (piece.id)
        ids.push_back(*piece.id);
      else
        LATTE_RETURN_IF_ERROR(
            state_->EncodePlain(piece.text, piece.text.data() == text.data(), &scratch, &ids));
    }
  }
  return ids;
}

Result<std::vector<int32_t>> Tokenizer::EncodePieces(std::span<const TextPiece> pieces) const {
  size_t bytes = 0;
  for (const TextPiece& piece : pieces) bytes += piece.text.size();
  LATTE_RETURN_IF_ERROR(CheckSize(bytes));
  const JoinedText joined = Join(pieces);
  LATTE_ASSIGN_OR_RETURN(const auto found,
                         state_->added.Split(joined.text, joined.template_ranges));
  // The chunks of the whole text split plain text, never a token: a long message cannot move the
  // border of a chunk into the token that marks a turn.
  const std::vector<std::string_view> chunks = state_->Chunks(joined.text);
  auto chunk = chunks.begin();
  State::Scratch scratch(state_->pre_tokenizer);
  std::vector<int32_t> ids;
  ReserveIds(joined.text.size(), &ids);
  for (const AddedTokens::Piece& piece : found) {
    if (piece.id) {
      ids.push_back(*piece.id);
      continue;
    }
    for (std::string_view rest = piece.text; !rest.empty();) {
      while (chunk->data() + chunk->size() <= rest.data()) ++chunk;
      const auto left = static_cast<size_t>(chunk->data() + chunk->size() - rest.data());
      const std::string_view part = rest.substr(0, left);
      LATTE_RETURN_IF_ERROR(
          state_->EncodePlain(part, part.data() == joined.text.data(), &scratch, &ids));
      rest.remove_prefix(part.size());
    }
  }
  return ids;
}

Result<std::string> Tokenizer::Decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t id = ids[i];
    if (id < 0 || id >= vocab_size())
      return InvalidArgument(
          fmt::format("token id {} at place {}: expected 0 to {}", id, i, vocab_size() - 1));
    if (!skip_special || !IsSpecial(id)) out += TokenBytes(id);
  }
  if (state_->file.strips_space && out.starts_with(' ')) out.erase(0, 1);
  return out;
}

std::string_view Tokenizer::TokenBytes(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  return state_->file.token_bytes[static_cast<size_t>(id)];
}

size_t Tokenizer::max_token_bytes() const { return state_->max_token_bytes; }

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(state_->file.token_bytes.size());
}
std::optional<int32_t> Tokenizer::bos_id() const { return state_->bos; }
std::optional<int32_t> Tokenizer::eos_id() const { return state_->eos; }
std::optional<int32_t> Tokenizer::pad_id() const { return state_->pad; }
const std::string& Tokenizer::chat_template() const { return state_->config.chat_template.text; }
const std::vector<std::string>& Tokenizer::unused_chat_templates() const {
  return state_->config.chat_template.unused;
}

Status Tokenizer::CheckChatTemplate() const {
  const TokenizerConfig& config = state_->config;
  const std::string& text = config.chat_template.text;
  if (text.empty() && config.chat_template.problem)
    return tl::unexpected(*config.chat_template.problem);
  const auto lacks = [&](std::string_view key, const std::optional<std::string>& token,
                         const std::optional<int32_t>& id) {
    return token && !id && text.find(key) != std::string::npos;
  };
  if (lacks("bos_token", config.bos_token, state_->bos))
    return NoSuchToken("bos_token", *config.bos_token, "the chat template");
  if (lacks("eos_token", config.eos_token, state_->eos))
    return NoSuchToken("eos_token", *config.eos_token, "the chat template");
  return {};
}

bool Tokenizer::adds_bos() const {
  return state_->config.add_bos_token.value_or(state_->file.template_bos.has_value());
}

std::optional<int32_t> Tokenizer::TokenId(std::string_view token_text) const {
  const auto found = state_->ids.find(token_text);
  if (found == state_->ids.end()) return std::nullopt;
  return found->second;
}

bool Tokenizer::IsSpecial(int32_t id) const {
  return id >= 0 && id < vocab_size() && state_->special[static_cast<size_t>(id)];
}

std::vector<int32_t> Tokenizer::AddedIds() const {
  std::vector<int32_t> out;
  for (const AddedToken& token : state_->file.added) out.push_back(token.id);
  return out;
}

}  // namespace latte
