// The filters, tests, methods and functions that templates may call, each from a fixed list. They
// can reach only their arguments and, for strftime_now, the given time.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/jinja/value.h"

namespace latte::jinja {

using Values = std::vector<Value>;

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Whether an argument has a value: none is as good as absent.
inline bool Given(const Value& value) {
  return !value.Is(Kind::kUndefined) && !value.Is(Kind::kNone);
}

// The arguments in the order of `names`; an argument that was not given is undefined.
// Errors: kInvalidArgument for unknown or repeated arguments, for too many, and for fewer than
// `required`.
[[nodiscard]] Result<Values> Bind(const Arguments& arguments,
                                  std::initializer_list<std::string_view> names,
                                  size_t required = 0);

// The same for one argument. Errors: kInvalidArgument for a value of another type; `what` names it.
// The text lives as long as the value.
[[nodiscard]] Result<std::string_view> StringArgument(const Value& value, std::string_view what);
[[nodiscard]] Result<int64_t> IntegerArgument(const Value& value, int64_t fallback,
                                              std::string_view what);

// For the bytes of the arguments. The functions below begin with it.
[[nodiscard]] Status SpendArguments(const Arguments& arguments, Budget* budget);

// Errors of all four: kUnsupported for an unknown name; the errors of the called function.
[[nodiscard]] Result<Value> ApplyFilter(const std::string& name, const Value& input,
                                        const Arguments& arguments, Budget* budget);
[[nodiscard]] Result<bool> ApplyTest(const std::string& name, const Value& input,
                                     const Arguments& arguments, Budget* budget);
[[nodiscard]] Result<Value> CallMethod(const Value& self, const std::string& name,
                                       const Arguments& arguments, Budget* budget);
bool IsFilter(std::string_view name);
bool IsTest(std::string_view name);
bool IsMethod(const Value& self, std::string_view name);

// The names in the tables, so that a test can call everything.
constexpr std::string_view kFunctions[] = {"namespace", "range", "raise_exception", "strftime_now",
                                           "dict"};
std::vector<std::string_view> FilterNames();
std::vector<std::string_view> TestNames();
std::vector<std::string_view> MethodNames(Kind kind);

// The functions that do not depend on the state of the rendering: range, dict, raise_exception.
[[nodiscard]] Result<Value> CallFunction(const std::string& name, const Arguments& arguments,
                                         Budget* budget);

// `how` is lower, upper, capitalize, title (as str.title has it) or "title filter" (words begin
// after spaces, hyphens and brackets). Errors: kExhausted.
[[nodiscard]] Result<Value> ChangeCase(const Value& input, std::string_view how, Budget* budget);

}  // namespace latte::jinja
