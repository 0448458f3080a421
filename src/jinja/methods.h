// The methods by kind of object. Internal to src/jinja.
#pragma once

#include <span>
#include <string_view>

#include "src/jinja/call.h"

namespace latte::jinja {

// `name` is the name of the method, for methods that share a function.
using Method = Result<Value> (*)(const Value& self, std::string_view name,
                                 const Arguments& arguments, Budget* budget);

struct MethodRow {
  Kind kind;
  std::string_view name;
  Method method;
};

std::span<const MethodRow> TextMethods();  // text_methods.cc

}  // namespace latte::jinja
