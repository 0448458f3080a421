// What templates may call: filters, tests, methods and functions, each from a fixed list. None of
// them can reach anything but its arguments and, for strftime_now, the time it was given.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/jinja/value.h"

namespace latte::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The arguments in the order of `names`, undefined where one was not given.
// Errors: kInvalidArgument for too many, unknown or repeated ones, and for fewer than `required`.
[[nodiscard]] Result<std::vector<Value>> Bind(const Arguments& arguments,
                                              std::initializer_list<std::string_view> names,
                                              size_t required = 0);

// Errors of all: kUnsupported for a name that is not known; those of what is called.
[[nodiscard]] Result<Value> ApplyFilter(const std::string& name, const Value& input,
                                        const Arguments& arguments, Budget* budget);
[[nodiscard]] Result<bool> ApplyTest(const std::string& name, const Value& input,
                                     const Arguments& arguments, Budget* budget);
[[nodiscard]] Result<Value> CallMethod(const Value& self, const std::string& name,
                                       const Arguments& arguments, Budget* budget);
bool IsMethod(const Value& self, std::string_view name);

// The functions that need no state of the rendering: range, dict, raise_exception.
[[nodiscard]] Result<Value> CallFunction(const std::string& name, const Arguments& arguments,
                                         Budget* budget);

// Lower, upper or title case. Errors: kUnsupported beyond ASCII, where case needs Unicode's tables.
[[nodiscard]] Result<Value> ChangeCase(const Value& input, std::string_view how, Budget* budget);

}  // namespace latte::jinja
