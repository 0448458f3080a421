// Python's two ways to put values into text: '%5.2f' % x, and '{:>5}'.format(x). Text of a user
// keeps its origin.
#pragma once

#include "latte/status.h"

#include "src/jinja/call.h"
#include "src/jinja/value.h"

namespace latte::jinja {

// `arguments` is a tuple of values, a dict for %(name)s, or one value.
// Errors: kInvalidArgument for a wrong format, a value of the wrong kind, and too few or too many
// values; kUnsupported for rare conversions; kExhausted.
[[nodiscard]] Result<Value> FormatPercent(const Text& format, const Value& arguments,
                                          Budget* budget);

// Errors: as above; values that no field names are ignored.
[[nodiscard]] Result<Value> FormatBraces(const Text& format, const Arguments& arguments,
                                         Budget* budget);

// `text` on a side of `width` characters, or between two fills. The odd character is on the right
// with kMiddle, as format() has it, and with kCenter where str.center has it.
enum class Side { kLeft, kRight, kMiddle, kCenter };
[[nodiscard]] Result<Value> Padded(const Text& text, int64_t width, Side side,
                                   std::string_view fill, Budget* budget);

}  // namespace latte::jinja
