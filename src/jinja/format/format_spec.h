// Python's format specifications: "[[fill]align][sign][#][0][width][grouping][.precision][type]".
// Internal to src/jinja.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/jinja/value.h"

namespace latte::jinja {

struct FormatSpec {
  std::string fill = " ";  // one character
  char align = 0;          // '<', '>', '^', '=' (after the sign), or 0: as usual for the value
  char sign = '-';         // '+' and ' ' for numbers that are not negative
  bool alternate = false;  // 0x before hexadecimal digits
  bool percent = false;    // of '%5d': the rules of %, where format() has others
  int64_t width = 0;
  char grouping = 0;       // ',' or '_'
  int64_t precision = -1;  // not given
  char type = 0;           // 's', 'd', 'x', 'f', …; 0: as usual for the value
};

// Errors: kInvalidArgument.
[[nodiscard]] Result<FormatSpec> ParseFormatSpec(std::string_view text);

// Errors: kInvalidArgument for a value of the wrong kind; kUnsupported for rare types; kExhausted.
[[nodiscard]] Result<Text> WriteField(const Value& value, const FormatSpec& spec, Budget* budget);

}  // namespace latte::jinja
