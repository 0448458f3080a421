// Reads tokenizer.json and tokenizer_config.json into plain structs and checks every claim in them.
// Accepts byte-level BPE; refuses by name what would change ids and is not done here.
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

// tokenizer.json, checked: every id is in [0, token_bytes.size()), merges fit together.
struct TokenizerFile {
  std::vector<std::string> token_bytes;    // by id, byte-level alphabet undone; empty: no token
  std::vector<bool> is_byte_level;         // by id: the file spells it in the byte-level alphabet
  std::array<int32_t, 256> byte_tokens{};  // the token of each single byte
  std::vector<BpeMerge> merges;
  bool ignore_merges = false;
  bool is_tiktoken = false;  // from tiktoken.model: merges go by result, long texts are cut first
  std::vector<PreTokenizeStep> steps;
  std::vector<AddedToken> added;
  std::optional<std::string> template_bos;  // the token that TemplateProcessing puts first
};

// Errors: kCorrupt when the file contradicts itself, kUnsupported for what Latte does not do; both
// name the key.
[[nodiscard]] Result<TokenizerFile> ParseTokenizerFile(std::string_view json);

class Json;

// One token of `added_tokens` or `added_tokens_decoder`, without its id.
// Errors: as above.
[[nodiscard]] Result<AddedToken> ReadAddedToken(const Json& entry);

// tokenizer_config.json: what of it concerns the tokenizer. Of the tokens with a role these two
// matter; those for padding, for the unknown and so on change no id.
struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> pad_token;  // nothing, too, where it is no text
  std::optional<bool> add_bos_token;
  bool lists_added_tokens = false;  // has added_tokens_decoder: no older file says more
  ChatTemplate chat_template;
};

// Errors: as above.
[[nodiscard]] Result<TokenizerConfig> ParseTokenizerConfig(std::string_view json);

// Takes bos_token and eos_token from special_tokens_map.json where `config` does not name them, as
// transformers does for files from before added_tokens_decoder. Errors: as above.
[[nodiscard]] Status AddSpecialTokensMap(std::string_view json, TokenizerConfig* config);

}  // namespace latte
