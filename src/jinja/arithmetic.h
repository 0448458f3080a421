// Arithmetic of Python's int and float. An integer beyond 64 bits, which Python would make longer,
// is an error.
#pragma once

#include <string_view>

#include "latte/status.h"

#include "src/jinja/value.h"

namespace latte::jinja {

// `op` is one of + - * / // % **. Requires: both are numbers.
// Errors: kInvalidArgument for division by zero and for results beyond 64 bits, beyond the range
// of a float, or that are no real numbers.
[[nodiscard]] Result<Value> Arithmetic(std::string_view op, const Value& a, const Value& b);

// Python's round(): to the nearest number of `digits` decimals, the even one of two. Requires: a
// number. Errors: kInvalidArgument beyond 64 bits.
[[nodiscard]] Result<Value> RoundNumber(const Value& number, int64_t digits);

// The integer part of a float, rounded towards zero. Errors: kInvalidArgument if it is no integer
// of 64 bits.
[[nodiscard]] Result<int64_t> WholePart(double number);

}  // namespace latte::jinja
