// Converts text to token ids and back, for tokenizers of byte-level BPE and of SentencePiece's kind
// in the form of Hugging Face's tokenizer.json, or of the tiktoken.model of Kimi and Moonlight. The
// ids equal the ids of the `tokenizers` and `tiktoken` packages. Loading refuses every unsupported
// setting that would change an id. `truncation` and `padding` describe batches of a training
// pipeline and have no effect.
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
  // Puts the BOS id first. kInvalidArgument if the tokenizer has no BOS.
  bool add_bos = false;
  // Text that spells a special token becomes that token. Leave it off for text from a user: there
  // "<|end|>" is seven ordinary characters.
  bool parse_special = false;
  // Text that spells an added token that is not special becomes that token, as Hugging Face always
  // does. Some models mark turns with such tokens (DeepSeek-V3: <｜User｜>). Turn it off where text
  // from a user must not open a turn.
  bool parse_added = true;
};

// A run of text and its origin. Tokens are recognised by their spelling in text of a chat template,
// but not in text of a user.
struct TextPiece {
  std::string text;
  bool from_template = false;  // written by a chat template or encoder
};

// Immutable, thread-safe. Copies are cheap and share their tables.
class Tokenizer {
 public:
  // Reads `dir`/tokenizer.json and, if they exist, tokenizer_config.json, special_tokens_map.json
  // and chat templates (chat_template_files.h). Without tokenizer.json it reads tiktoken.model, and
  // then tokenizer_config.json is required.
  // Errors: kNotFound if a required file is missing; kCorrupt and kUnsupported naming file and key.
  [[nodiscard]] static Result<Tokenizer> Load(const std::string& dir);

  // As Load, from text. With tokenizer.json, `config_json` may be empty. Messages put `place`
  // before the name of a file.
  [[nodiscard]] static Result<Tokenizer> FromJson(std::string_view tokenizer_json,
                                                  std::string_view config_json = {},
                                                  std::string_view place = {});
  [[nodiscard]] static Result<Tokenizer> FromTiktoken(std::string_view tiktoken_model,
                                                      std::string_view config_json,
                                                      std::string_view place = {});

  // The ids of `text`, which may be any bytes: invalid UTF-8 is first replaced by U+FFFD.
  // Errors: kInvalidArgument if the text has 2^31 bytes or more, a piece of the pre-tokenizer more
  // than 1 MiB, or if splitting it exceeds the limits of the pattern.
  // Cost: O(n log n).
  [[nodiscard]] Result<std::vector<int32_t>> Encode(std::string_view text,
                                                    EncodeOptions options = {}) const;

  // The ids of all pieces together. Special and other added tokens are recognised only if their
  // whole spelling lies in text of the template. The text between two such tokens is encoded as one
  // text, so the ids equal Encode(all of it, parse_special), unless text of a user takes part in
  // the spelling of a token. Adds no BOS: templates write it.
  // Errors: as Encode.
  [[nodiscard]] Result<std::vector<int32_t>> EncodePieces(std::span<const TextPiece> pieces) const;

  // The bytes of the tokens, concatenated; a tokenizer of SentencePiece's kind takes off the space
  // that its Encode puts before a text. They may be invalid UTF-8 (StreamDecoder repairs that). An
  // id without a token adds nothing. skip_special leaves special tokens out.
  // Errors: kInvalidArgument for an id outside [0, vocab_size()).
  [[nodiscard]] Result<std::string> Decode(std::span<const int32_t> ids,
                                           bool skip_special = false) const;

  // The bytes of one token; an added token gives its text. Empty for an id without a token. Valid
  // as long as any copy of this tokenizer exists.
  std::string_view TokenBytes(int32_t id) const;

  // The most bytes of text that one token stands for; 0 if there is no such bound, because an added
  // token takes the white space around it.
  size_t max_token_bytes() const;

  // One more than the highest id. A model's own vocab_size may be larger.
  int32_t vocab_size() const;
  std::optional<int32_t> bos_id() const;
  std::optional<int32_t> eos_id() const;
  std::optional<int32_t> pad_id() const;

  // Whether prompts should begin with BOS: add_bos_token of the config or, without it, the
  // post-processor.
  bool adds_bos() const;

  // The id whose TokenBytes are `token_text`. Added tokens take precedence over the model's own.
  std::optional<int32_t> TokenId(std::string_view token_text) const;
  bool IsSpecial(int32_t id) const;
  // The ids of all added tokens, special or not.
  std::vector<int32_t> AddedIds() const;
  const std::string& chat_template() const;  // empty if the checkpoint has none

  // Errors: the reason why the chat template cannot make prompts: it is unusable, or it writes a
  // token with a role (such as BOS) that the vocabulary lacks.
  [[nodiscard]] Status CheckChatTemplate() const;
  // Chat templates of the checkpoint that are not used, described in words.
  const std::vector<std::string>& unused_chat_templates() const;

 private:
  struct State;
  static Result<Tokenizer> FromTexts(Result<TokenizerFile> file, std::string_view config_json,
                                     std::string_view place);
  static Result<Tokenizer> Build(TokenizerFile file, TokenizerConfig config);
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

// Converts a stream of ids to text that is valid UTF-8 at every step: bytes that begin a code point
// are kept until the bytes that complete it arrive. All output together equals the bytes of all ids
// with invalid parts replaced by U+FFFD. Thread-compatible.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special = false)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  // The text that `id` completes; often empty. An id without a token, in range or not, adds
  // nothing, because a model may sample one.
  std::string Push(int32_t id);

  // Ends the stream: returns one U+FFFD if a code point is incomplete, otherwise nothing.
  std::string Flush();

 private:
  Tokenizer tokenizer_;
  bool skip_special_;
  std::string pending_;  // at most 3 bytes
};

}  // namespace latte
