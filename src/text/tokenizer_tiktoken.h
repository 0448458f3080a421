// Reads tokenizers in the form of Kimi-K2 and Moonlight, which have no tokenizer.json.
// `tiktoken.model` lists one token per line as "BASE64 RANK"; the rank is both the id and the merge
// order. `added_tokens_decoder` of tokenizer_config.json names the 256 ids after the ranks. Neither
// file says how text is split: Latte uses the pattern of Kimi's own code and supports no other.
#pragma once

#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/text/tokenizer_json.h"

namespace latte {

// `model` is the text of tiktoken.model, `config_json` the text of tokenizer_config.json. The ranks
// must be 0 to n-1, in any order. An id after the ranks that the config does not name is the
// special token "<|reserved_token_ID|>".
// Errors: kCorrupt naming the file, and the line or the key.
// Cost: O(n log n).
[[nodiscard]] Result<TokenizerFile> ParseTiktokenFile(std::string_view model,
                                                      std::string_view config_json);

// Cuts a long text where Kimi's code cuts it before it searches for tokens: every 400,000
// characters, and every 25,000 characters inside a run of white space or of other characters. A cut
// may split a word or the text of a special token, which changes ids.
// Requires: `text` is valid UTF-8. The pieces point into it.
std::vector<std::string_view> TiktokenChunks(std::string_view text);

}  // namespace latte
