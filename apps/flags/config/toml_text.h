// TOML as plain values. Only toml_text.cc includes toml++, because its header takes seconds to
// compile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "latte/status.h"

namespace latte {

// A value of another type: dates, tables, lists of other things than texts.
struct TomlOther {
  std::string kind;  // "a date"
};
using TomlValue =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>, TomlOther>;

// `key = value` in a line of the file, at its top or in a table.
struct TomlEntry {
  std::string table;  // "engine"; empty: at the top
  std::string key;
  TomlValue value;
  int64_t line = 0;  // from 1
};

// In the order of the file. Errors: kInvalidArgument naming `where` and the line.
[[nodiscard]] Result<std::vector<TomlEntry>> ParseToml(std::string_view text,
                                                       const std::string& where);

// "'bf16'", "64", "true", "a list": a value in messages.
std::string TomlValueText(const TomlValue& value);

// A text in quotes, as TOML writes it.
std::string TomlQuoted(std::string_view text);

}  // namespace latte
