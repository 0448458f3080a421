// Text to token ids and back, for the byte-level BPE tokenizers that Hugging Face's tokenizer.json
// or the tiktoken.model of Kimi and Moonlight describe. Ids equal those of the `tokenizers` and the
// `tiktoken` package. What the file asks for and Latte does not do is refused when loading, never
// ignored, where it would change an id; `truncation` and `padding`, which say how a training
// pipeline cut its batches, have no effect here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte {

struct TokenizerConfig;
struct TokenizerFile;

// How Encode treats text that spells a token.
struct EncodeOptions {
  // Puts the BOS id first; kInvalidArgument when the tokenizer has none.
  bool add_bos = false;
  // Text that spells a special token becomes that token. Off for anything a user wrote: there,
  // "<|end|>" is seven characters like any other.
  bool parse_special = false;
  // Text that spells an added token that is not special becomes that token, as Hugging Face always
  // does. Some models mark even their turn delimiters so (DeepSeek-V3: <｜User｜>); turn it off
  // where text from a user must not be able to open a turn.
  bool parse_added = true;
};

// A run of text and whether it may hold tokens that are recognised by their spelling: what a chat
// template wrote may, what a user wrote must not.
struct TextPiece {
  std::string_view text;
  bool trusted = false;
};

// Immutable, thread-safe. Copies are cheap and share their tables.
class Tokenizer {
 public:
  // Reads `dir`/tokenizer.json and, where they exist, tokenizer_config.json,
  // special_tokens_map.json and chat templates (template_files.h). Without tokenizer.json,
  // reads tiktoken.model and then needs tokenizer_config.json.
  // Errors: kNotFound without the files that are needed; kCorrupt and kUnsupported naming file and
  // key.
  [[nodiscard]] static Result<Tokenizer> Load(const std::string& dir);

  // The same from text; with tokenizer.json, `config_json` may be empty.
  [[nodiscard]] static Result<Tokenizer> FromJson(std::string_view tokenizer_json,
                                                  std::string_view config_json = {});
  [[nodiscard]] static Result<Tokenizer> FromTiktoken(std::string_view tiktoken_model,
                                                      std::string_view config_json);

  // The ids of `text`, which may be any bytes: invalid UTF-8 is first replaced by U+FFFD.
  // Errors: kInvalidArgument when the text has 2^31 bytes or more, or when splitting it takes more
  // work than the pattern's limits allow.
  // Cost: O(n log n); three to ten megabytes a second.
  [[nodiscard]] Result<std::vector<int32_t>> Encode(std::string_view text,
                                                    EncodeOptions options = {}) const;

  // The ids of all pieces together. Special and other added tokens are recognised only where their
  // whole spelling lies in trusted text; everything between two of them is encoded as one text, so
  // that the ids are those of Encode(all of it, parse_special) unless untrusted text takes part in
  // the spelling of a token. No BOS is added: templates write it.
  // Errors: as Encode.
  [[nodiscard]] Result<std::vector<int32_t>> EncodePieces(std::span<const TextPiece> pieces) const;

  // The bytes of the tokens one after the other; may be invalid UTF-8 (StreamDecoder repairs that).
  // An id that has no token gives nothing. skip_special leaves special tokens out.
  // Errors: kInvalidArgument for an id outside [0, vocab_size()).
  [[nodiscard]] Result<std::string> Decode(std::span<const int32_t> ids,
                                           bool skip_special = false) const;

  // The bytes that one token stands for; an added token stands for its text. Empty for an id
  // without a token. Valid as long as any copy of this tokenizer.
  std::string_view TokenBytes(int32_t id) const;

  // One more than the highest id. A model's own vocab_size may be larger.
  int32_t vocab_size() const;
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;
  std::optional<int32_t> pad_id() const;

  // Whether prompts are meant to begin with BOS: add_bos_token of the config, or else what the
  // post-processor says.
  bool adds_bos() const;

  // The id whose TokenBytes are `token_text`; added tokens go before the model's own.
  std::optional<int32_t> TokenId(std::string_view token_text) const;
  bool IsSpecial(int32_t id) const;
  const std::string& chat_template() const;  // empty if there is none

  // What stands in the way of prompts by the chat template, and of nothing else: a template that
  // cannot be used, or one that writes a token with a role which the vocabulary lacks.
  [[nodiscard]] Status CheckChatTemplate() const;
  // Chat templates that the checkpoint has and that are not used, in words.
  const std::vector<std::string>& unused_chat_templates() const;

 private:
  struct State;
  static Result<Tokenizer> Build(TokenizerFile file, TokenizerConfig config);
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

// Turns a stream of ids into text that is valid UTF-8 at every step: bytes that begin a code point
// wait for the ones that finish it. All pieces together are the bytes of all ids with invalid parts
// replaced by U+FFFD. Thread-compatible.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special = false)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  // The text that `id` completes; often empty. An id without a token, in range or not, adds
  // nothing: a model may sample one.
  std::string Push(int32_t id);

  // The end of the stream: one U+FFFD if a code point was left unfinished, else nothing.
  std::string Flush();

 private:
  Tokenizer tokenizer_;
  bool skip_special_;
  std::string pending_;  // at most 3 bytes
};

}  // namespace latte
