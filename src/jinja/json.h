// Converts JSON to template values and back. Keys keep their order, which src/base/json.h does not
// promise and which prompts need: tools must appear as the client wrote them. The output follows
// Python's json.dumps, as in Hugging Face's `tojson` filter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "latte/status.h"

#include "src/jinja/value.h"

namespace latte::jinja {

// Strings of the result are text of a user; invalid UTF-8 and lone surrogates become U+FFFD.
// Errors: kInvalidArgument with the byte offset; also for nesting beyond 64, more than a million
// values, and integers beyond 64 bits.
[[nodiscard]] Result<Value> ParseJson(std::string_view text, std::string_view where);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;  // one item per line, indented by `indent`
  std::string indent;
  std::string item_separator = ", ";  // Python's default is "," when pretty
  std::string key_separator = ": ";
};

// Errors: kInvalidArgument for a value that JSON cannot express; kExhausted.
[[nodiscard]] Result<std::string> DumpJson(const Value& value, const JsonStyle& style,
                                           Budget* budget);

}  // namespace latte::jinja
