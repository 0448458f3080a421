// Reads the tokenizer of folders in the form of Kimi-K2 and Moonlight, which have no
// tokenizer.json: `tiktoken.model` lists one token per line as "BASE64 RANK", where the rank is
// both the id and the order of merging, and `added_tokens_decoder` of tokenizer_config.json names
// the 256 ids behind the ranks. How text is split is written down in neither; Latte has the pattern
// of Kimi's own code and reads no other.
#pragma once

#include <string_view>
#include <vector>

#include "latte/status.h"

#include "src/text/tokenizer_json.h"

namespace latte {

// `model` is the text of tiktoken.model, `config_json` that of tokenizer_config.json. Ranks must be
// 0 to n-1, in any order. An id behind them that the config does not name is the special token
// "<|reserved_token_ID|>".
// Errors: kCorrupt naming the file, and the line or the key.  Cost: O(n log n).
[[nodiscard]] Result<TokenizerFile> ParseTiktokenFile(std::string_view model,
                                                      std::string_view config_json);

// Where Kimi's code cuts a long text before it looks for anything in it: every 400,000 characters,
// and every 25,000 inside a run of white space or of anything else. Such a cut may go through a
// word or through the text of a special token, and so changes ids.
// Requires: `text` is valid UTF-8. The pieces point into it.
std::vector<std::string_view> TiktokenChunks(std::string_view text);

}  // namespace latte
