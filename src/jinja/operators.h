// Operators, subscripts and attributes of values. They follow Python's rules and check sizes before
// they allocate. An attribute is a key of a dict, a member of a namespace, or a method from a fixed
// list; nothing else can be reached.
#pragma once

#include <string>
#include <string_view>

#include "src/jinja/value.h"

namespace latte::jinja {

constexpr std::string_view kBinaryOperators[] = {"+", "-", "*", "/", "//", "%", "**"};
constexpr std::string_view kComparisons[] = {"==", "!=", "<", "<=", ">", ">="};

// `op` is one of kBinaryOperators.
// Errors: kInvalidArgument for operands of the wrong kind, overflow and division by zero;
// kExhausted.
[[nodiscard]] Result<Value> BinaryOperation(std::string_view op, const Value& a, const Value& b,
                                            Budget* budget);

// `op` is one of kComparisons, "in" or "not in".
// Errors: kInvalidArgument for operands that have no order or no members; kExhausted.
[[nodiscard]] Result<bool> Compares(std::string_view op, const Value& a, const Value& b,
                                    Budget* budget);

[[nodiscard]] Result<bool> Contains(const Value& container, const Value& item, Budget* budget);

// Undefined if the object has no such attribute or item.
// Errors: kInvalidArgument if the object is undefined.
[[nodiscard]] Result<Value> GetAttribute(const Value& object, const std::string& name,
                                         Budget* budget);
[[nodiscard]] Result<Value> GetItem(const Value& object, const Value& index, Budget* budget);

// The bounds may be None.
[[nodiscard]] Result<Value> GetSlice(const Value& object, const Value& start, const Value& stop,
                                     const Value& step, Budget* budget);

// The number of items, characters or keys. Errors: kInvalidArgument for a value without a length.
[[nodiscard]] Result<int64_t> Length(const Value& value, Budget* budget);

}  // namespace latte::jinja
