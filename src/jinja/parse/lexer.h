// Splits a template into text and tokens, as Jinja2 does with trim_blocks and lstrip_blocks on: the
// white space that tags or these settings remove is already gone, and a raw block is text. Line
// statements are not supported.
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
  kEnd  // exactly one, at the end
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;  // for strings: the value, without quotes and escapes
  uint32_t offset = 0;
};

// Replaces every kind of newline by "\n" and removes one at the very end, as Jinja2 does.
std::string NormaliseNewlines(std::string_view source);

// "chat template, line 3, column 7: "
std::string Where(std::string_view source, uint32_t offset);

// Errors: kInvalidArgument with line and column. Requires: `source` has normalised newlines.
[[nodiscard]] Result<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace latte::jinja
