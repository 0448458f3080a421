// Splits a template into text and tokens, as Jinja2 does with trim_blocks and lstrip_blocks on:
// white space that the tags or those settings take away is already gone. Line statements and raw
// blocks are not known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/status.h"

namespace latte::jinja {

enum class TokenType {
  kData,  // text between tags
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd  // once, last
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;  // strings: without quotes and escapes
  uint32_t offset = 0;
};

// One kind of newline, and none at the very end of the template, as Jinja2 reads it.
std::string NormaliseNewlines(std::string_view source);

// "chat template, line 3, column 7: "
std::string Where(std::string_view source, uint32_t offset);

// Errors: kInvalidArgument with line and column. `source` has normalised newlines.
[[nodiscard]] Result<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace latte::jinja
