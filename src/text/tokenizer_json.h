// Reads tokenizer.json and tokenizer_config.json into plain structs and validates them. Accepts
// byte-level BPE and SentencePiece's BPE with bytes for unknown characters; refuses, by name, every
// unsupported setting that would change ids.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/text/added_tokens.h"
#include "src/text/bpe.h"
#include "src/text/chat_template_files.h"
#include "src/text/pretokenize.h"

namespace latte {

// A validated tokenizer.json: every id is in [0, token_bytes.size()), and the merges are
// consistent.
struct TokenizerFile {
  std::vector<std::string> token_bytes;    // by id, decoded from the spelling of the file; empty:
                                           // no token
  std::vector<bool> is_byte_level;         // by id: the file uses the byte-level alphabet for it;
                                           // of SentencePiece: it is no single byte
  std::array<int32_t, 256> byte_tokens{};  // the token of each single byte
  Bpe::Characters characters;              // of SentencePiece: tokens of single characters
  std::vector<BpeMerge> merges;
  bool ignore_merges = false;
  bool is_tiktoken = false;  // from tiktoken.model: merges are ordered by result, long texts are
                             // cut first
  std::vector<PreTokenizeStep> steps;
  std::vector<AddedToken> added;
  std::optional<std::string> template_bos;  // the token that TemplateProcessing puts first
  bool is_sentencepiece = false;
  bool strips_space = false;  // decoded text loses one space at its beginning
};

// Errors: kCorrupt if the file contradicts itself, kUnsupported for a setting that Latte does not
// support; both name the key.
[[nodiscard]] Result<TokenizerFile> ParseTokenizerFile(std::string_view json);

class Json;

// One token of `added_tokens` or `added_tokens_decoder`, without its id.
// Errors: as above.
[[nodiscard]] Result<AddedToken> ReadAddedToken(const Json& entry);

// The parts of tokenizer_config.json that concern the tokenizer. Only two tokens with a role
// matter, BOS and EOS; the others (padding, unknown and so on) change no id.
struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;  // also empty if it is not a string
  std::optional<bool> add_bos_token;
  bool lists_added_tokens = false;  // has added_tokens_decoder; no older file has a newer feature
  ChatTemplate chat_template;
};

// Messages put `place` before the name of the file. Errors: as above.
[[nodiscard]] Result<TokenizerConfig> ParseTokenizerConfig(std::string_view json,
                                                           std::string_view place = {});

// Takes bos_token and eos_token from special_tokens_map.json if `config` does not name them, as
// transformers does for files older than added_tokens_decoder.
// Errors: as above.
[[nodiscard]] Status AddSpecialTokensMap(std::string_view json, TokenizerConfig* config);

}  // namespace latte
